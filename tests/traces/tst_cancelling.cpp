// Long imports and exports are cancelled in the middle: reading, creating a run, storing it, exporting it. The stop
// comes from the work's own report, at a chosen point, so that it is always in the middle. Nothing half-written stays.
#include <QtTest/QtTest>

#include <filesystem>
#include <fstream>
#include <set>

#include <zlib.h>

#include "schedules/library/registry.h"
#include "tests/traces/folder_content.h"
#include "traces/export/chrome_json.h"
#include "traces/export/kineto_writer.h"
#include "traces/export/perfetto.h"
#include "traces/import/import.h"
#include "traces/run/simulated_run.h"
#include "traces/store/add_runs.h"
#include "traces/store/run_file.h"

using namespace stagewright;
namespace fs = std::filesystem;

namespace {

// Stops itself at the n-th report that starts with these words.
struct StopsAt {
    StopsAt(std::string words, int times) : m_words(std::move(words)), m_left(times)
    {
        progress.stop = m_stop.get_token();
        progress.report = [this](std::string_view what, std::int64_t, std::int64_t) {
            if (m_stop.stop_requested()) ++reportsAfter;
            if (what.starts_with(m_words) && --m_left == 0) m_stop.request_stop();
        };
    }
    bool asked() const { return m_stop.stop_requested(); }

    Progress progress;
    int reportsAfter = 0; // of work that went on

private:
    std::stop_source m_stop;
    std::string m_words;
    int m_left;
};

Run simulatedOrder(const char* schedule, int ranks, int microbatches)
{
    const Schedule order = *makeSchedule(schedule, Shape{ranks, microbatches, 0});
    return *simulatedRun(order, CostModel::uniform(order));
}

// A rank with kernels on two streams under its ops, in the order in which they were launched.
std::string traceOf(int rank, int ops, int kernels)
{
    std::string text = "{\"schemaVersion\":1,\"distributedInfo\":{\"rank\":" + std::to_string(rank) +
                       ",\"world_size\":2},\"traceEvents\":[\n";
    int correlation = 0;
    for (int op = 0; op < ops; ++op) {
        const std::string at = std::to_string(op * 2000);
        text += "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"PP:" + std::to_string(rank) + "F" +
                std::to_string(op) + "\",\"pid\":1,\"tid\":1,\"ts\":" + at + ",\"dur\":1500},\n";
        for (int k = 0; k < kernels; ++k) {
            const std::string time = std::to_string(op * 2000 + k), number = std::to_string(++correlation);
            text += "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,\"ts\":" +
                    time + ",\"dur\":0.5,\"args\":{\"correlation\":" + number + "}},\n";
            text += "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":" + std::to_string(7 + k % 2) +
                    ",\"ts\":" + time + ",\"dur\":0.8,\"args\":{\"stream\":" + std::to_string(7 + k % 2) +
                    ",\"correlation\":" + number + "}},\n";
        }
    }
    return text + "{\"ph\":\"i\",\"name\":\"end\",\"ts\":1}]}\n";
}

} // namespace

class TestCancelling : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    std::vector<std::string> m_traces; // of a job of two ranks, some megabytes each
    std::string m_gzip;

    std::string path(const char* name) const { return m_folder.filePath(QString::fromLatin1(name)).toStdString(); }

private slots:
    void initTestCase()
    {
        for (int rank = 0; rank < 2; ++rank) {
            const std::string text = traceOf(rank, 16, 1000);
            m_traces.push_back(path(rank == 0 ? "job_rank0.json" : "job_rank1.json"));
            std::ofstream(m_traces.back(), std::ios::binary) << text;
            QVERIFY(text.size() > 3'000'000); // several windows of the reader
        }
        m_gzip = path("packed_rank0.json.gz");
        const std::string text = traceOf(0, 100, 1000);
        gzFile packed = gzopen(m_gzip.c_str(), "wb1");
        QCOMPARE(gzwrite(packed, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
        QCOMPARE(gzclose(packed), Z_OK);
    }

    void reading_data()
    {
        QTest::addColumn<QString>("words");
        QTest::addColumn<int>("times");
        QTest::addColumn<bool>("packed");
        QTest::newRow("the first bytes") << "bytes" << 1 << false;
        QTest::newRow("the second window") << "bytes" << 2 << false;
        QTest::newRow("packed") << "bytes" << 1 << true;
        QTest::newRow("packed, further") << "bytes" << 3 << true;
        QTest::newRow("messages") << "pairing messages" << 1 << false;
        QTest::newRow("labels") << "reading labels" << 1 << false;
        QTest::newRow("the first rank") << "ranks" << 1 << false;
        QTest::newRow("the second rank") << "ranks" << 2 << false;
        QTest::newRow("the timeline") << "ranks" << 3 << false;
        QTest::newRow("costs") << "fitting costs" << 1 << false;
    }
    void reading()
    {
        QFETCH(const QString, words);
        QFETCH(const int, times);
        QFETCH(const bool, packed);
        StopsAt stops(words.toStdString(), times);
        const auto before = threadsOfThisProcess();
        const auto result = importTraces(packed ? std::vector<std::string>{m_gzip} : m_traces, {}, stops.progress);
        QVERIFY(stops.asked());
        QVERIFY(!result);
        QCOMPARE(result.error().code, ErrorCode::Cancelled);
        QVERIFY2(result.error().message.find("cancelled") != std::string::npos, result.error().message.c_str());
        // two readers, each at its file's end
        QVERIFY2(stops.reportsAfter <= 4, qPrintable(QString::number(stops.reportsAfter)));
        QCOMPARE(threadsOfThisProcess(), before); // readers are joined
    }

    // The same traces are a run where nobody stops: kernels on both streams under their ops.
    void notStopped()
    {
        const auto result = importTraces(m_traces, {});
        QVERIFY(result);
        QCOMPARE(result->runs.size(), std::size_t{1});
        const ImportedRun& made = result->runs[0];
        QCOMPARE(made.kernels, 2 * 16 * 1000);
        QCOMPARE(made.kernelsUnderOps, 2 * 16 * 1000);
        const Timeline& timeline = *made.run.timeline;
        for (const Track& track : timeline.tracks()) {
            if (track.lane != Lane::Kernel) continue;
            QCOMPARE(track.end - track.begin, SpanId{16 * 500});
            for (SpanId id = track.begin; id < track.end; ++id) {
                const Span& span = timeline.spans()[id];
                QCOMPARE(span.op.microbatch, static_cast<int>(id - track.begin) / 500);
                QCOMPARE(timeline.edgesInto(id).size(), std::size_t{1});
            }
        }
    }

    void storing_data()
    {
        QTest::addColumn<QString>("words");
        QTest::addColumn<int>("times");
        QTest::addColumn<bool>("there");
        QTest::newRow("a new file") << "storing spans" << 1 << false;
        QTest::newRow("a new file, further") << "storing spans" << 5 << false;
        QTest::newRow("a new file, its second run") << "storing spans" << 6 << false;
        QTest::newRow("added") << "storing spans" << 3 << true;
        QTest::newRow("added, at the copy") << "adding runs" << 1 << true;
        QTest::newRow("added, at the second run's copy") << "adding runs" << 2 << true;
    }
    void storing()
    {
        QFETCH(const QString, words);
        QFETCH(const int, times);
        QFETCH(const bool, there);
        const QTemporaryDir folder;
        const std::string target = folder.filePath("runs.stagewright").toStdString();
        const Run one = simulatedOrder("1f1b", 4, 64), other = simulatedOrder("zb-h1", 4, 64),
                  old = simulatedOrder("gpipe", 2, 4);
        if (there) QVERIFY(addRuns(target, std::vector{&old}));
        // but for the marks of the last journal in the header of the file (docs/database.md)
        const auto content = [&folder] {
            auto files = contentOf(folder.path());
            for (QByteArray& bytes : files)
                if (bytes.size() > 88) bytes.replace(72, 16, QByteArray(16, '\0'));
            return files;
        };
        const auto before = content();
        StopsAt stops(words.toStdString(), times);
        const auto stopped = addRuns(target, std::vector{&one, &other}, stops.progress);
        QVERIFY(stops.asked());
        QVERIFY(!stopped);
        QCOMPARE(stopped.error().code, ErrorCode::Cancelled);
        QCOMPARE(content(), before); // byte for byte
        const auto ids = addRuns(target, std::vector{&one, &other});
        QVERIFY(ids);
        QCOMPARE(*ids, (there ? std::vector<std::int64_t>{2, 3} : std::vector<std::int64_t>{1, 2}));
        const auto file = RunFile::open(target, OpenMode::Read);
        QVERIFY(file);
        QCOMPARE((*file)->runs()->size(), there ? std::size_t{3} : std::size_t{2});
        const auto read = (*file)->read(ids->back());
        QVERIFY(read);
        QCOMPARE(read->timeline->spans().size(), other.timeline->spans().size());
    }

    // A run that is stored in place, as recordings are: its transaction is rolled back.
    void storingInPlace()
    {
        const QTemporaryDir folder;
        auto file = RunFile::open(folder.filePath("runs.stagewright").toStdString(), OpenMode::Create);
        QVERIFY(file);
        const Run run = simulatedOrder("1f1b", 4, 16);
        QVERIFY((*file)->add(run));
        StopsAt stops("storing spans", 2);
        const auto stopped = (*file)->add(run, stops.progress);
        QVERIFY(!stopped);
        QCOMPARE(stopped.error().code, ErrorCode::Cancelled);
        QCOMPARE((*file)->runs()->size(), std::size_t{1});
        QCOMPARE((*file)->query("SELECT count(*) FROM run_text WHERE run=2")->rows[0][0], std::string("0"));
        QVERIFY((*file)->add(run)); // and goes on
    }

    void placesAreAskedBefore()
    {
        const QTemporaryDir folder;
        const std::string inside = folder.filePath("a.stagewright").toStdString();
        QVERIFY(mayAddRuns(inside));
        QVERIFY(!fs::exists(inside)); // the check creates nothing
        const auto missing = mayAddRuns(folder.filePath("no/such/a.stagewright").toStdString());
        QVERIFY(!missing);
        QVERIFY2(missing.error().message.find("can't be written to") != std::string::npos,
                 missing.error().message.c_str());
        const auto isFolder = mayAddRuns(folder.path().toStdString());
        QVERIFY(!isFolder && isFolder.error().message.find("is a folder") != std::string::npos);
        std::ofstream(inside) << "Dear reader, this is not a run file, however long it may be.\n";
        QVERIFY(!mayAddRuns(inside));
        std::ofstream(inside, std::ios::trunc).close();
        QVERIFY(mayAddRuns(inside)); // as mktemp makes them
        const Run run = simulatedOrder("gpipe", 2, 4);
        QVERIFY(addRuns(inside, std::vector{&run}));
        QCOMPARE((*RunFile::open(inside, OpenMode::Read))->runs()->size(), std::size_t{1});
    }

    void exporting_data()
    {
        QTest::addColumn<QString>("format");
        QTest::addColumn<QString>("words");
        QTest::addColumn<int>("times");
        QTest::newRow("perfetto, spans") << "perfetto"
                                         << "writing spans" << 1;
        QTest::newRow("perfetto, bubbles") << "perfetto"
                                           << "writing bubbles" << 1;
        QTest::newRow("perfetto, the last rank's spans") << "perfetto"
                                                         << "writing spans" << 4;
        QTest::newRow("chrome, spans") << "chrome"
                                       << "writing spans" << 3;
        QTest::newRow("chrome, bubbles") << "chrome"
                                         << "writing bubbles" << 1;
        QTest::newRow("kineto, the first rank") << "kineto"
                                                << "writing spans" << 1;
        QTest::newRow("kineto, further") << "kineto"
                                         << "writing spans" << 4;
    }
    void exporting()
    {
        QFETCH(const QString, format);
        QFETCH(const QString, words);
        QFETCH(const int, times);
        const Run run = simulatedOrder("1f1b", 4, 2048);
        const auto write = [&](const std::string& place, const Progress& progress) -> Result<std::int64_t> {
            const auto spans = [](const auto& counts) {
                return counts ? Result<std::int64_t>(counts->spans) : tl::unexpected(counts.error());
            };
            if (format == "perfetto") return spans(writePerfettoFile(run, place, progress));
            if (format == "chrome") return spans(writeChromeJsonFile(run, place, progress));
            return spans(writeKinetoFolder(run, place, progress));
        };
        const QTemporaryDir folder;
        const std::string place = folder.filePath(format == "kineto" ? "traces" : "trace").toStdString();
        StopsAt stops(words.toStdString(), times);
        const auto stopped = write(place, stops.progress);
        QVERIFY(stops.asked());
        QVERIFY(!stopped);
        QCOMPARE(stopped.error().code, ErrorCode::Cancelled);
        QVERIFY2(stopped.error().message.find("cancelled") != std::string::npos, stopped.error().message.c_str());
        QVERIFY(contentOf(folder.path()).isEmpty());
        // an existing file stays
        if (format != "kineto") {
            std::ofstream(place) << "kept";
            StopsAt again(words.toStdString(), times);
            QVERIFY(!write(place, again.progress));
            QCOMPARE(contentOf(folder.path()), (QMap<QString, QByteArray>{{"trace", "kept"}}));
        }
        const auto spans = write(place, {});
        QVERIFY(spans);
        QCOMPARE(*spans, static_cast<std::int64_t>(run.timeline->spans().size()));
    }
};

QTEST_GUILESS_MAIN(TestCancelling)
#include "tst_cancelling.moc"
