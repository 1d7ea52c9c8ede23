// A run read in parts holds what the whole read holds: block by block, while it grows, with damage, and cancelled.
#include <QtTest/QtTest>

#include <filesystem>
#include <map>
#include <random>
#include <set>

#include "recorded_runs.h"
#include "sample_runs.h"
#include "traces/store/run_file.h"

using namespace stagewright;
namespace fs = std::filesystem;

namespace {

// Every span as stored in the file, by track name.
struct Streamed {
    std::map<std::string, std::vector<Span>> spans;
    std::int64_t damaged = 0;
    std::int64_t count = 0;
};

Result<Streamed> streamed(const RunFile& file, std::int64_t id, const Progress& progress = {})
{
    STAGEWRIGHT_TRY(auto content, file.content(id));
    Streamed out;
    STAGEWRIGHT_TRY(out.damaged,
                    file.streamSpans(
                        id,
                        [&](const RunFile::SpanBlock& block) {
                            const Track& track = content.tracks.at(block.track);
                            auto& all =
                                out.spans[std::to_string(track.rank) + std::string(toText(track.lane)) + track.name];
                            for (const Span& span : block.spans) all.push_back(span);
                            out.count += static_cast<std::int64_t>(block.spans.size());
                            return true;
                        },
                        progress));
    return out;
}

QString differenceOf(const Streamed& parts, const Timeline& whole)
{
    if (parts.count != static_cast<std::int64_t>(whole.spans().size()))
        return QStringLiteral("%1 spans streamed, %2 read").arg(parts.count).arg(whole.spans().size());
    for (const Track& track : whole.tracks()) {
        const auto spans = whole.spansOf(track);
        const auto found = parts.spans.find(std::to_string(track.rank) + std::string(toText(track.lane)) + track.name);
        if (spans.empty() && found == parts.spans.end()) continue;
        if (found == parts.spans.end() || found->second.size() != spans.size())
            return QStringLiteral("track %1").arg(QString::fromStdString(track.name));
        std::vector<Span> sorted = found->second;
        std::stable_sort(sorted.begin(), sorted.end(), [](const Span& a, const Span& b) {
            return std::pair(a.start, a.end) < std::pair(b.start, b.end);
        });
        for (std::size_t i = 0; i < spans.size(); ++i)
            if (sorted[i].start != spans[i].start || sorted[i].end != spans[i].end || sorted[i].op != spans[i].op ||
                sorted[i].step != spans[i].step)
                return QStringLiteral("span %1 of track %2").arg(i).arg(QString::fromStdString(track.name));
    }
    return {};
}

} // namespace

class TestRunStream : public QObject {
    Q_OBJECT

private:
    QTemporaryDir m_folder;
    int m_files = 0;

    std::string freshPath() { return m_folder.filePath(QString("file%1.stagewright").arg(++m_files)).toStdString(); }

private slots:
    void theStreamIsTheWholeRead_data()
    {
        QTest::addColumn<int>("kind");
        QTest::newRow("one segment") << 0;
        QTest::newRow("step by step") << 1;
    }
    void theStreamIsTheWholeRead()
    {
        QFETCH(int, kind);
        const std::string path = freshPath();
        if (kind == 0) {
            auto file = RunFile::open(path, OpenMode::Create).value();
            file->add(samples::randomRun(3)).value();
        } else {
            samples::recordRun(path, {4, 9, 25}).value();
        }
        const auto file = RunFile::open(path, OpenMode::Read).value();
        const auto whole = file->read(1).value();
        const auto parts = streamed(*file, 1);
        QVERIFY(parts.has_value());
        QCOMPARE(parts->damaged, std::int64_t{0});
        QCOMPARE(differenceOf(*parts, *whole.timeline), QString());
        const auto content = file->content(1).value();
        QCOMPARE(content.tracks.size(), whole.timeline->tracks().size());
        for (std::size_t i = 0; i < content.tracks.size(); ++i)
            QCOMPARE(content.spanCount[i],
                     static_cast<std::int64_t>(whole.timeline->spansOf(whole.timeline->tracks()[i]).size()));
        QCOMPARE(content.begin, whole.timeline->begin());
        QCOMPARE(content.end, whole.timeline->end());
        std::size_t events = 0;
        std::map<std::pair<int, int>, Bytes> sums, expected;
        QVERIFY(file->streamMemory(1,
                                   [&](std::span<const MemoryEvent> part) {
                                       for (const MemoryEvent& event : part)
                                           sums[{event.rank, static_cast<int>(event.category)}] += event.delta;
                                       events += part.size();
                                       return true;
                                   })
                    .has_value());
        for (const MemoryEvent& event : whole.timeline->memory())
            expected[{event.rank, static_cast<int>(event.category)}] += event.delta;
        QCOMPARE(events, whole.timeline->memory().size());
        QVERIFY(sums == expected);
    }

    // A range holds what overlaps it of the whole run, with the edges inside and the memory in use; in one segment and
    // in many.
    void aRangeIsThatPartOfTheRun()
    {
        const std::string path = freshPath();
        samples::recordRun(path, {4, 200, 12, "zb-h1", 0.05, true}).value();
        const std::string single = freshPath();
        const Run whole = RunFile::open(path, OpenMode::Read).value()->read(1).value();
        RunFile::open(single, OpenMode::Create).value()->add(whole).value();
        const Timeline& t = *whole.timeline;
        std::mt19937 random(5);
        using Key = std::tuple<int, Lane, std::string, Nanos, Nanos, Op, int>;
        const auto keyOf = [](const Timeline& of, SpanId id) {
            const Track& track = of.trackOf(id);
            const Span& span = of.spans()[id];
            return Key{track.rank, track.lane, track.name, span.start, span.end, span.op, span.step};
        };
        for (int round = 0; round < 24; ++round) {
            const auto file = RunFile::open(round % 2 == 0 ? path : single, OpenMode::Read).value();
            const Nanos length = t.end() - t.begin();
            Nanos begin = t.begin() + static_cast<Nanos>(random() % 1000) * length / 1000,
                  end = begin + static_cast<Nanos>(1 + random() % 200) * length / 1000;
            if (round == 0) begin = t.begin(), end = t.end();
            if (round == 1) begin = t.end() + 1, end = t.end() + 100;
            std::vector<RunFile::BlockBounds> rows = file->blocks(1).value();
            std::erase_if(rows,
                          [&](const RunFile::BlockBounds& block) { return block.begin >= end || block.end <= begin; });
            const auto header = file->readHeader(1);
            QVERIFY(header && header->timeline->empty() && *header->schedule == *whole.schedule &&
                    header->timeline->timeUnit() == t.timeUnit());
            const auto part = round % 3 == 0
                                  ? file->readRange(1, begin, end)
                                  : file->readRange(1, begin, end, {}, rows, round % 3 == 1 ? &*header : nullptr);
            QVERIFY2(part.has_value(), part ? "" : part.error().message.c_str());
            QVERIFY(part->metrics.size() == whole.metrics.size() &&
                    part->costs.has_value() == whole.costs.has_value() && *part->schedule == *whole.schedule);
            const Timeline& p = *part->timeline;
            std::multiset<Key> expected, got;
            for (SpanId id = 0; id < t.spans().size(); ++id)
                if (t.spans()[id].start < end && t.spans()[id].end > begin) expected.insert(keyOf(t, id));
            for (SpanId id = 0; id < p.spans().size(); ++id) got.insert(keyOf(p, id));
            QVERIFY2(
                got == expected,
                qPrintable(
                    QStringLiteral("round %1: %2 spans, %3 expected").arg(round).arg(got.size()).arg(expected.size())));
            std::multiset<std::tuple<Key, Key, EdgeKind, Nanos>> edges, expectedEdges;
            const auto inside = [&](SpanId id) { return t.spans()[id].start < end && t.spans()[id].end > begin; };
            for (const Edge& edge : t.edges())
                if (inside(edge.from) && inside(edge.to))
                    expectedEdges.insert({keyOf(t, edge.from), keyOf(t, edge.to), edge.kind, edge.arrival});
            for (const Edge& edge : p.edges())
                edges.insert({keyOf(p, edge.from), keyOf(p, edge.to), edge.kind, edge.arrival});
            QVERIFY2(edges == expectedEdges, qPrintable(QStringLiteral("round %1: %2 edges, %3 expected")
                                                            .arg(round)
                                                            .arg(edges.size())
                                                            .arg(expectedEdges.size())));
            std::map<std::tuple<int, int, MemoryCategory>, Bytes> inUse, expectedInUse;
            for (const MemoryEvent& event : t.memory())
                if (event.time < end) expectedInUse[{event.rank, event.stage, event.category}] += event.delta;
            for (const MemoryEvent& event : p.memory()) inUse[{event.rank, event.stage, event.category}] += event.delta;
            std::erase_if(inUse, [](const auto& one) { return one.second == 0; });
            std::erase_if(expectedInUse, [](const auto& one) { return one.second == 0; });
            QVERIFY(inUse == expectedInUse);
        }
        std::int64_t counted = 0;
        const auto again = RunFile::open(single, OpenMode::Read).value();
        const auto stored = again->blocks(1).value();
        for (const auto& block : stored) counted += block.spans;
        QCOMPARE(counted, static_cast<std::int64_t>(t.spans().size()));
    }

    void theSummaryIsTheSumOfItsSegments()
    {
        const std::string path = freshPath();
        samples::recordRun(path, {3, 16, 40}).value();
        const auto rows = [](const RunFile& file, const char* sql) { return file.query(sql).value().rows; };
        const auto file = RunFile::open(path, OpenMode::Read).value();
        QVERIFY(!rows(*file, "SELECT 1 FROM pyramid WHERE segment=-1").empty());
        // the same run in one segment has no summary
        const std::string other = freshPath();
        {
            const Run whole = file->read(1).value();
            RunFile::open(other, OpenMode::Create).value()->add(whole).value();
        }
        const auto single = RunFile::open(other, OpenMode::Read).value();
        QVERIFY(rows(*single, "SELECT 1 FROM pyramid WHERE segment=-1").empty());
        const auto a = file->overview(1, 16).value(), b = single->overview(1, 16).value();
        QCOMPARE(a.bucketWidth, b.bucketWidth);
        QCOMPARE(a.begin, b.begin);
        QCOMPARE(a.busyByTrack.size(), b.busyByTrack.size());
        for (std::size_t track = 0; track < a.busyByTrack.size(); ++track)
            for (std::size_t i = 0; i < a.busyByTrack[track].size(); ++i) {
                QVERIFY(std::abs(a.busyByTrack[track][i] - b.busyByTrack[track][i]) < 1e-5F);
                int sum = 0;
                for (const auto share : a.sharesByTrack[track][i]) sum += share;
                QVERIFY2(std::abs(sum / 255.0 - static_cast<double>(a.busyByTrack[track][i])) < 4.0 / 255,
                         "shares by work add up to the busy share");
            }
        // finer than the summary: from the segments
        const auto fine = file->overview(1, 2000).value(), fineSingle = single->overview(1, 2000).value();
        for (std::size_t track = 0; track < fine.busyByTrack.size(); ++track)
            for (std::size_t i = 0; i < fine.busyByTrack[track].size(); ++i)
                QVERIFY(std::abs(fine.busyByTrack[track][i] - fineSingle.busyByTrack[track][i]) < 1e-5F);
    }

    void aGrowingFileIsReadStepByStep()
    {
        const std::string path = freshPath();
        samples::Recording recording(path, {4, 8, 0});
        for (int step = 0; step < 12; ++step) {
            QVERIFY(recording.append().has_value());
            const auto file = RunFile::open(path, OpenMode::Read).value();
            const auto parts = streamed(*file, 1);
            QVERIFY(parts.has_value());
            QCOMPARE(differenceOf(*parts, *file->read(1).value().timeline), QString());
            const auto newest = file->readStep(1, step).value();
            QCOMPARE(static_cast<std::int64_t>(newest.timeline->spans().size()), recording.spansPerStep());
            QCOMPARE(newest.info.state, RunState::Recording);
        }
    }

    // Following a recording costs what is new, however long it has run: as few bytes of the open file are read.
    void aNewStepCostsWhatItHolds()
    {
        const auto readSoFar = [] { // bytes, by this process
            QFile io(QStringLiteral("/proc/self/io"));
            return io.open(QIODevice::ReadOnly) ? io.readAll().mid(7).split('\n').value(0).toLongLong() : 0;
        };
        if (readSoFar() == 0) QSKIP("/proc/self/io can't be read here");
        const auto bytesRead = [&](int steps) -> qint64 {
            const std::string path = freshPath();
            samples::Recording recording(path, {8, 32, 0});
            for (int step = 0; step < steps; ++step)
                if (!recording.append()) return -1;
            // checks the pages of a file that no other process writes
            const auto file = RunFile::open(path, OpenMode::Read);
            const qint64 before = readSoFar();
            const auto run = (*file)->readSteps(1, steps - 1);
            if (!run || static_cast<std::int64_t>(run->timeline->spans().size()) != recording.spansPerStep()) return -1;
            return readSoFar() - before;
        };
        const qint64 early = bytesRead(10), late = bytesRead(400);
        QVERIFY(early > 0 && late > 0);
        QVERIFY2(late <= 2 * early, qPrintable(QStringLiteral("%1 and %2 bytes").arg(early).arg(late)));
    }

    void damagedBlocksAreLeftOutAndCounted()
    {
        const std::string path = freshPath();
        samples::recordRun(path, {4, 32, 6}).value();
        const auto at = QString::fromStdString(path);
        QFile raw(at);
        QVERIFY(raw.open(QIODevice::ReadOnly));
        const QByteArray bytes = raw.readAll();
        raw.close();
        const auto whole = RunFile::open(path, OpenMode::Read).value()->read(1).value();
        std::mt19937 random(5);
        int damagedFiles = 0;
        for (int round = 0; round < 60; ++round) {
            QByteArray broken = bytes;
            for (int i = 0; i < 4; ++i) {
                const auto place = static_cast<qsizetype>(random() % static_cast<std::uint32_t>(bytes.size()));
                broken[place] = static_cast<char>(broken[place] ^ static_cast<char>(1U << random() % 8));
            }
            const QString other = m_folder.filePath(QStringLiteral("broken.stagewright"));
            QFile out(other);
            QVERIFY(out.open(QIODevice::WriteOnly | QIODevice::Truncate));
            out.write(broken);
            out.close();
            const auto file = RunFile::open(other.toStdString(), OpenMode::Read);
            if (!file) continue;
            (void)(*file)->overview(1, 64);
            (void)(*file)->steps(1);
            const auto parts = streamed(**file, 1);
            const auto read = (*file)->read(1);
            if (!parts || !read) continue; // an error with words is as good
            if (parts->damaged == 0) continue;
            ++damagedFiles;
            QVERIFY(parts->count < static_cast<std::int64_t>(whole.timeline->spans().size()));
            QVERIFY(read->info.damagedBlocks >= parts->damaged);
        }
        QVERIFY2(damagedFiles > 0, "no round hit a block of spans");
    }

    void aFileCutWhileItIsOpenIsAnError()
    {
        const std::string path = freshPath();
        samples::recordRun(path, {8, 64, 20}).value();
        const auto file = RunFile::open(path, OpenMode::Read).value();
        fs::resize_file(path, fs::file_size(path) / 3);
        const auto parts = streamed(*file, 1);
        QVERIFY(!parts.has_value() || parts->damaged > 0);
        if (!parts) QVERIFY(!parts.error().message.empty());
    }

    void aStreamCanBeCancelledAndStopped()
    {
        const std::string path = freshPath();
        samples::recordRun(path, {4, 64, 10}).value();
        const auto file = RunFile::open(path, OpenMode::Read).value();
        std::stop_source stop;
        Progress progress;
        progress.stop = stop.get_token();
        int count = 0;
        progress.report = [&](std::string_view, std::int64_t done, std::int64_t total) {
            QVERIFY(done <= total);
            if (++count == 3) stop.request_stop();
        };
        const auto parts = streamed(*file, 1, progress);
        QVERIFY(!parts.has_value());
        QCOMPARE(parts.error().code, ErrorCode::Cancelled);
        QCOMPARE(count, 3);
        int blocks = 0;
        QVERIFY(file->streamSpans(1, [&](const RunFile::SpanBlock&) { return ++blocks < 5; }).has_value());
        QCOMPARE(blocks, 5);
        QVERIFY(file->read(1).has_value()); // the file is as usable as before
    }
};

QTEST_GUILESS_MAIN(TestRunStream)
#include "tst_run_stream.moc"
