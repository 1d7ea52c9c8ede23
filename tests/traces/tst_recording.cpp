// A recording: what a step writes, what readers see of steps that are not folded yet, and that nothing is lost where
// the disk is full, the file is taken away, a reader is stuck or the log is gone.
#include <QtTest/QtTest>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <thread>

#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include "recorded_runs.h"
#include "traces/compare/compare.h"
#include "traces/export/html_report.h"
#include "traces/fit/fit_costs.h"
#include "traces/fit/residuals.h"
#include "traces/report/run_report.h"
#include "traces/report/tables.h"
#include "traces/store/run_file.h"
#include "traces/store/run_overview.h"
#include "traces/store/run_store.h"
#include "traces/store/run_stream.h"
#include "traces/store/step_log.h"

using namespace stagewright;
namespace fs = std::filesystem;

namespace {

std::int64_t bytesOf(const std::string& path)
{
    std::int64_t bytes = 0;
    for (const char* suffix : {"", "-wal"}) {
        std::error_code none;
        const auto size = fs::file_size(path + suffix, none);
        if (!none) bytes += static_cast<std::int64_t>(size);
    }
    return bytes;
}

std::string answer(const RunFile& file, const std::string& sql)
{
    const auto table = file.query(sql);
    return table && !table->rows.empty() ? table->rows[0][0] : std::string("none");
}

// Everything a report shows of both runs is the same.
void compareReports(const Run& whole, const Run& some, int step)
{
    QCOMPARE(some.representativeStep(), whole.representativeStep());
    const auto all = reportOf(whole, {.step = step, .levers = true}),
               part = reportOf(some, {.step = step, .levers = true});
    QVERIFY2(all && part, all ? part ? "" : part.error().message.c_str() : all.error().message.c_str());
    QCOMPARE(part->step, all->step);
    QCOMPARE(part->spans, all->spans);
    const auto figures = all->figures(), others = part->figures();
    QCOMPARE(others.size(), figures.size());
    for (std::size_t i = 0; i < figures.size(); ++i) {
        QCOMPARE(others[i].key, figures[i].key);
        QVERIFY2(others[i].value == figures[i].value && others[i].byRank == figures[i].byRank &&
                     others[i].unknown == figures[i].unknown,
                 figures[i].key.c_str());
    }
    QCOMPARE(part->sentences(), all->sentences());
    QCOMPARE(part->overSteps.steps, all->overSteps.steps);
    QCOMPARE(part->overSteps.measured, all->overSteps.measured);
    QCOMPARE(part->overSteps.figures.size(), all->overSteps.figures.size());
    for (const auto& [key, sample] : all->overSteps.figures) {
        const FigureSample* other = part->overSteps.find(key);
        QVERIFY2(other && other->median == sample.median && other->low == sample.low && other->high == sample.high,
                 key.c_str());
    }
    QCOMPARE(part->criticalPath.size(), all->criticalPath.size());
    for (std::size_t rank = 0; rank < all->memory.size(); ++rank) {
        QCOMPARE(part->memory[rank].peak, all->memory[rank].peak);
        QCOMPARE(part->memory[rank].peakTime, all->memory[rank].peakTime);
        QCOMPARE(part->memory[rank].holders.size(), all->memory[rank].holders.size());
    }
}

const samples::RecordedShape small{2, 4, 60, "1f1b"};

// So are the tables of a step.
void compareTables(const Run& whole, const Run& some, int step)
{
    int compared = 0;
    for (const AnalysisInfo* analysis : allAnalyses()) {
        if (analysis->ofEveryStep || analysis->name == "residuals") continue; // over the steps that were read
        const ReportTable all = reportTable(*analysis, StepContext(whole, step)),
                          part = reportTable(*analysis, StepContext(some, step));
        QCOMPARE(part.unknown, all.unknown);
        QVERIFY2(part.rows == all.rows, analysis->name.data());
        QCOMPARE(part.sentence, all.sentence);
        compared += all.rows.empty() ? 0 : 1;
    }
    QVERIFY(compared > 5);
}

// What is over the measured steps is over those that were read, and says how many; the rest is as of the whole run.
void compareOverSteps(const Run& whole, const Run& some)
{
    const auto all = compareRuns(whole, whole), part = compareRuns(some, some);
    QVERIFY(all && part);
    QCOMPARE(part->headline, all->headline);
    QCOMPARE(part->why, all->why);
    QCOMPARE(part->ops.size(), all->ops.size());
    QCOMPARE(part->metrics.size(), all->metrics.size());
    for (std::size_t i = 0; i < all->metrics.size(); ++i)
        QVERIFY2(part->metrics[i].a == all->metrics[i].a && part->metrics[i].b == all->metrics[i].b,
                 all->metrics[i].key.c_str());
    QVERIFY(part->historyA != nullptr);

    const auto costs = fitCosts(*some.timeline, some.info.warmupSteps),
               allCosts = fitCosts(*whole.timeline, whole.info.warmupSteps);
    QVERIFY(costs && allCosts);
    QVERIFY2(QString::fromStdString(costs->origin)
                 .contains(QRegularExpression(QStringLiteral("^fitted from \\d+ of steps"))),
             costs->origin.c_str());
    QCOMPARE(costs->launch.size(), allCosts->launch.size());
    const auto residuals = residualsOf(some, *costs), allResiduals = residualsOf(whole, *allCosts);
    QVERIFY(residuals && allResiduals);
    QVERIFY(residuals->steps < residuals->measured && residuals->measured == allResiduals->steps);
    QCOMPARE(residuals->ops.size(), allResiduals->ops.size());
    const ReportTable table = reportTable(*findAnalysis("residuals"), StepContext(some, 0));
    QVERIFY2(QString::fromStdString(table.sentence)
                 .contains(QStringLiteral("(median of %1 of %2 steps)").arg(residuals->steps).arg(residuals->measured)),
             table.sentence.c_str());
    const auto page = htmlReport(some);
    QVERIFY2(page && page->find("What would help") != std::string::npos, page ? "" : page.error().message.c_str());
}

} // namespace

class TestRecording : public QObject {
    Q_OBJECT

private:
    QTemporaryDir m_folder;
    int m_files = 0;

    std::string freshPath()
    {
        return m_folder.filePath(QStringLiteral("file%1.stagewright").arg(++m_files)).toStdString();
    }

private slots:
    // A step of 2 ranks and 4 microbatches: at most 10 KiB, checkpoints included.
    void aStepWritesLittle()
    {
        const std::string path = freshPath();
        samples::Recording recording(path, small);
        for (int step = 0; step < 20; ++step) QVERIFY(recording.append().has_value());
        const std::int64_t before = samples::writtenBytes();
        for (int step = 0; step < 400; ++step) QVERIFY(recording.append().has_value());
        const std::int64_t each = (samples::writtenBytes() - before) / 400;
        qInfo("%lld bytes a step", static_cast<long long>(each));
        QVERIFY2(before > 0 && each > 500 && each <= 10 * 1024, qPrintable(QStringLiteral("%1 bytes").arg(each)));
    }

    // Steps move into the tables a few megabytes at a time, into the room of those before them.
    void aFoldedFileIsFull()
    {
        const std::string path = freshPath();
        samples::Recording recording(path, {8, 512, 40, "1f1b"});
        for (int step = 0; step < 40; ++step) QVERIFY(recording.append().has_value());
        QVERIFY(recording.finish().has_value());
        const auto size = static_cast<std::int64_t>(fs::file_size(path));
        {
            auto file = RunFile::open(path, OpenMode::Write);
            QVERIFY(file.has_value());
            QVERIFY((*file)->compact().has_value());
        }
        const auto compacted = static_cast<std::int64_t>(fs::file_size(path));
        QVERIFY2(compacted > (8 << 20), qPrintable(QString::number(compacted)));
        QVERIFY2(size < compacted * 3 / 2,
                 qPrintable(QStringLiteral("%1 bytes, compacted %2").arg(size).arg(compacted)));
    }

    // While somebody reads for long, nothing is written twice; after that the log is small again.
    void aStuckReaderCostsLittle()
    {
        const std::string path = freshPath();
        samples::Recording recording(path, small);
        for (int step = 0; step < 50; ++step) QVERIFY(recording.append().has_value());
        const std::int64_t before = bytesOf(path);
        {
            std::jthread stuck([&](std::stop_token stop) {
                Progress own;
                own.stop = stop;
                const auto second = RunFile::open(path, OpenMode::Read).value();
                (void)second->query("WITH RECURSIVE n(value) AS (SELECT count(*) FROM run UNION ALL SELECT value+1 "
                                    "FROM n WHERE value<100000000000) SELECT max(value) FROM n",
                                    10, own);
            });
            QTest::qWait(300);
            for (int step = 0; step < 1500; ++step) QVERIFY(recording.append().has_value());
            const std::int64_t during = bytesOf(path);
            stuck.request_stop();
            stuck.join();
            QVERIFY(recording.append().has_value());
            QVERIFY(recording.append().has_value());
            QVERIFY(fs::file_size(path + "-wal") <= 16 << 20);
            QVERIFY(recording.finish().has_value());
            const double kept = static_cast<double>(bytesOf(path)) / 1552;
            const double each = static_cast<double>(during - before) / 1500;
            qInfo("%.0f of %.0f bytes a step", static_cast<double>(each), static_cast<double>(kept));
            QVERIFY2(each <= 2.5 * kept, qPrintable(QStringLiteral("%1 of %2 bytes").arg(each).arg(kept)));
        }
    }

    // A query can't let go of its view: it ends before the log is large.
    void anEndlessQueryEnds()
    {
        const std::string path = freshPath();
        samples::Recording recording(path, {4, 16, 0, "zb-h1"});
        QVERIFY(recording.append().has_value());
        const std::string endless = "WITH RECURSIVE n(value) AS (SELECT count(*) FROM run UNION ALL SELECT value+1 "
                                    "FROM n WHERE value<100000000000) SELECT max(value) FROM n";
        std::atomic<bool> ended = false;
        QString message;
        std::uintmax_t longest = 0;
        {
            std::jthread asking([&](std::stop_token stop) {
                Progress own;
                own.stop = stop;
                const auto answer = RunFile::open(path, OpenMode::Read).value()->query(endless, 10, own);
                if (!answer && answer.error().code == ErrorCode::Failed)
                    message = QString::fromStdString(answer.error().message);
                ended = true;
            });
            while (!ended && longest < 64U << 20) {
                QVERIFY(recording.append().has_value());
                longest = std::max(longest, fs::file_size(path + "-wal"));
            }
        }
        QVERIFY2(message.contains(QStringLiteral("16 MiB were recorded")), qPrintable(message));
        QVERIFY2(longest < 40U << 20, qPrintable(QString::number(longest)));
        // puts the log into the file, then starts it over
        for (int step = 0; step < 3; ++step) QVERIFY(recording.append().has_value());
        QVERIFY(fs::file_size(path + "-wal") <= 16U << 20);
        QCOMPARE(answer(*RunFile::open(path, OpenMode::Read).value(), "SELECT count(*) FROM runs"), std::string("1"));
    }

    // So do bounds and overviews, which read what they would read in one view.
    void boundsAndOverviewsLetGo()
    {
        const std::string path = freshPath();
        samples::Recording recording(path, small);
        constexpr int steps = 5000; // more than are read at a time
        for (int step = 0; step < steps; ++step) QVERIFY(recording.append().has_value());
        const auto file = RunFile::open(path, OpenMode::Read).value();
        RunStore store(path, OpenMode::Read, Database::open(path, SQLITE_OPEN_READONLY).value());
        const auto letsGo = [&](const auto& read) {
            return inSnapshot(store, [&]() -> decltype(read()) {
                STAGEWRIGHT_CHECK(store.loadSteps());
                store.longestView = std::chrono::milliseconds(0);
                const auto taken = store.viewTaken;
                auto done = read();
                store.longestView = std::chrono::hours(1);
                if (store.viewTaken == taken) return fail(ErrorCode::Invalid, "one view");
                return done;
            });
        };
        const auto bounds = letsGo([&] { return readStepBounds(store, 1); });
        QVERIFY2(bounds, bounds ? "" : bounds.error().message.c_str());
        const auto expected = file->steps(1);
        QVERIFY(expected && bounds->size() == steps && expected->size() == steps);
        for (std::size_t i = 0; i < expected->size(); ++i) {
            const RunFile::StepBounds &a = (*expected)[i], &b = (*bounds)[i];
            QVERIFY(a.step == b.step && a.begin == b.begin && a.end == b.end && a.spans == b.spans);
        }
        const auto blocks = letsGo([&] { return readBlockBounds(store, 1); });
        QVERIFY(blocks && blocks->size() == file->blocks(1)->size());
        const auto content = letsGo([&] { return readContent(store, 1); });
        QVERIFY(content && content->spanCount == file->content(1)->spanCount && content->metrics.size() == 1);
        QCOMPARE(content->metrics[0].values, file->content(1)->metrics[0].values);
    }

    void anOverviewLetsGo()
    {
        const std::string path = freshPath();
        samples::Recording recording(path, small);
        for (int step = 0; step < 12; ++step) QVERIFY(recording.append().has_value());
        const auto expected = RunFile::open(path, OpenMode::Read).value()->overview(1, 100);
        RunStore store(path, OpenMode::Read, Database::open(path, SQLITE_OPEN_READONLY).value());
        const auto overview = inSnapshot(store, [&]() -> Result<RunFile::Overview> {
            STAGEWRIGHT_CHECK(store.loadSteps());
            store.longestView = std::chrono::milliseconds(0);
            const auto taken = store.viewTaken;
            QTest::qWait(1);
            auto read = readOverview(store, 1, 100, {});
            if (store.viewTaken == taken) return fail(ErrorCode::Invalid, "one view");
            return read;
        });
        QVERIFY2(overview, overview ? "" : overview.error().message.c_str());
        QVERIFY(expected.has_value());
        QVERIFY(!expected->busyByTrack.empty());
        QCOMPARE(overview->tracks.size(), expected->tracks.size());
        QVERIFY(overview->busyByTrack == expected->busyByTrack && overview->sharesByTrack == expected->sharesByTrack);
    }

    // A reader that takes long lets go of its view and goes on: the log starts over meanwhile, and what is read is the
    // run as it was at first.
    void aSlowReaderLetsGo()
    {
        const std::string path = freshPath();
        const samples::RecordedShape shape{4, 16, 0, "zb-h1"};
        constexpr int before = 200;
        samples::Recording recording(path, shape);
        for (int step = 0; step < before; ++step) QVERIFY(recording.append().has_value());
        const auto reader = RunFile::open(path, OpenMode::Read).value();
        std::atomic<bool> read = false;
        std::uintmax_t longest = 0;
        std::atomic<std::int64_t> appended = 0;
        bool recorded = true;
        std::jthread writer([&] {
            const std::int64_t first = samples::writtenBytes();
            while (!read) {
                recorded = recorded && recording.append().has_value();
                longest = std::max(longest, fs::file_size(path + "-wal"));
                appended = samples::writtenBytes() - first;
            }
        });
        std::map<int, std::int64_t> spans;
        constexpr std::int64_t enough = 40 << 20; // to be written meanwhile
        std::int64_t seen = 0;
        const auto slow = [&](const RunFile::SpanBlock& block) {
            spans[block.step] += static_cast<std::int64_t>(block.spans.size());
            seen += static_cast<std::int64_t>(block.spans.size());
            for (int i = 0; i < 10 && appended < enough * seen / (before * recording.spansPerStep()); ++i)
                QThread::msleep(10);
            return true;
        };
        const auto damaged = reader->streamSpans(1, slow);
        read = true;
        writer.join();
        QVERIFY2(damaged, damaged ? "" : damaged.error().message.c_str());
        QCOMPARE(*damaged, std::int64_t{0});
        QVERIFY(recorded);
        QVERIFY2(appended > 32 << 20, qPrintable(QString::number(appended.load())));
        QVERIFY2(longest <= 16U << 20,
                 qPrintable(QStringLiteral("%1 bytes of log, %2 written").arg(longest).arg(appended.load())));
        QVERIFY(static_cast<int>(spans.size()) >= before && static_cast<int>(spans.size()) < recording.steps());
        int expected = 0;
        for (const auto& [step, count] : spans) {
            QCOMPARE(step, expected++);
            QCOMPARE(count, recording.spansPerStep());
        }
    }

    // The steps are folded into the tables while they are read: each is read once.
    void aReaderWhileTheRunCloses()
    {
        const std::string path = freshPath();
        samples::Recording recording(path, {4, 8, 0, "zb-h1"});
        constexpr int steps = 1500; // folded in several transactions
        for (int step = 0; step < steps; ++step) QVERIFY(recording.append().has_value());
        const auto reader = RunFile::open(path, OpenMode::Read).value();
        std::map<int, std::int64_t> spans;
        int blocks = 0;
        Result<void> finished;
        std::jthread closing;
        const auto slow = [&](const RunFile::SpanBlock& block) {
            spans[block.step] += static_cast<std::int64_t>(block.spans.size());
            if (blocks++ == 0) closing = std::jthread([&] { finished = recording.finish(); });
            if (blocks % 64 == 0) QThread::msleep(20);
            return true;
        };
        const auto damaged = reader->streamSpans(1, slow);
        closing.join();
        QVERIFY2(damaged && finished,
                 damaged ? finished ? "" : finished.error().message.c_str() : damaged.error().message.c_str());
        QCOMPARE(*damaged, std::int64_t{0});
        QCOMPARE(static_cast<int>(spans.size()), steps);
        for (const auto& [step, count] : spans)
            QVERIFY2(count == recording.spansPerStep(), qPrintable(QString::number(step)));
        const Run whole = reader->read(1).value();
        QCOMPARE(whole.timeline->spans().size(), static_cast<std::size_t>(steps * recording.spansPerStep()));
    }

    // The same run while it is recorded, after its writer was killed, and folded.
    void bothFormsAreTheSameRun()
    {
        const std::string path = freshPath(), killed = freshPath();
        samples::Recording recording(path, small);
        for (int step = 0; step < small.steps; ++step) QVERIFY(recording.append().has_value());
        const auto reader = RunFile::open(path, OpenMode::Read).value();
        Run live = reader->read(1).value();
        Run one = reader->readStep(1, 30).value();
        const auto bounds = reader->steps(1).value();
        const auto blocks = reader->blocks(1).value();
        const std::string spans = answer(*reader, "SELECT count(*) FROM spans"),
                          edges = answer(*reader, "SELECT count(*) FROM edges"),
                          steps = answer(*reader, "SELECT count(*) FROM steps");
        const auto overview = reader->overview(1, 100).value();
        QCOMPARE(answer(*reader, "SELECT count(*) FROM step_log"), std::to_string(small.steps));
        QCOMPARE(answer(*reader, "SELECT steps FROM runs"), std::to_string(small.steps));
        QVERIFY(recording.finish().has_value());
        // the same reader, after the steps were folded under it
        const Run folded = reader->read(1).value();
        QCOMPARE(answer(*reader, "SELECT count(*) FROM step_log"), std::string("0"));
        QCOMPARE(live.info.state, RunState::Recording);
        live.info.state = folded.info.state;
        one.info.state = folded.info.state;
        QCOMPARE(QString::fromStdString(samples::difference(live, folded)), QString());
        QCOMPARE(QString::fromStdString(samples::difference(one, reader->readStep(1, 30).value())), QString());
        QCOMPARE(bounds.size(), reader->steps(1).value().size());
        QCOMPARE(blocks.size(), reader->blocks(1).value().size());
        QCOMPARE(answer(*reader, "SELECT count(*) FROM spans"), spans);
        QCOMPARE(answer(*reader, "SELECT count(*) FROM edges"), edges);
        QCOMPARE(answer(*reader, "SELECT count(*) FROM steps"), steps);
        QCOMPARE(overview.busyByTrack.size(), reader->overview(1, 100).value().busyByTrack.size());
        QCOMPARE(reader->intact(1).value(), std::optional<bool>(true));
        QVERIFY(!fs::exists(path + "-lock"));

        QVERIFY(samples::recordAndDie(killed, small));
        {
            const auto file = RunFile::open(killed, OpenMode::Read).value();
            QVERIFY(file->missing().empty());
            Run dead = file->read(1).value();
            QCOMPARE(dead.info.state, RunState::Interrupted);
            dead.info.state = folded.info.state;
            QCOMPARE(QString::fromStdString(samples::difference(dead, folded)), QString());
        }
        const std::string target = freshPath();
        QVERIFY(RunFile::open(target, OpenMode::Create).value()->merge(killed).has_value());
        const auto merged = RunFile::open(target, OpenMode::Read).value();
        QCOMPARE(answer(*merged, "SELECT count(*) FROM spans"), spans);
        QCOMPARE(answer(*merged, "SELECT count(*) FROM step_log"), std::string("0"));
        QVERIFY(RunFile::open(killed, OpenMode::Write).value()->compact().has_value());
        const auto compacted = RunFile::open(killed, OpenMode::Read).value();
        QCOMPARE(answer(*compacted, "SELECT count(*) FROM spans"), spans);
        QCOMPARE(answer(*compacted, "SELECT count(*) FROM step_log"), std::string("0"));
    }

    // A report of a large run reads the steps that it is made from, and shows what one of the whole run does.
    void aReportReadsFewSteps()
    {
        const std::string path = freshPath();
        samples::Recording recording(path, {2, 4, 200, "1f1b"});
        for (int step = 0; step < 200; ++step) QVERIFY(recording.append().has_value());
        for (const bool folded : {false, true}) {
            if (folded) QVERIFY(recording.finish().has_value());
            const auto file = RunFile::open(path, OpenMode::Read).value();
            const auto whole = file->read(1);
            QVERIFY(whole.has_value());
            for (const int step : {-1, 0, 101, 199}) {
                const auto some = file->readForReport(1, step);
                QVERIFY2(some, some ? "" : some.error().message.c_str());
                QVERIFY(some->timeline->spans().size() < whole->timeline->spans().size() / 2);
                QCOMPARE(some->timeline->steps(), 200);
                compareReports(*whole, *some, step);
                compareTables(*whole, *some, step < 0 ? whole->representativeStep() : step);
            }
            compareOverSteps(*whole, file->readForReport(1, -1).value());
        }
    }

    void aReportOfAnyFile_data()
    {
        QTest::addColumn<QString>("file");
        for (const QFileInfo& file : QDir(QStringLiteral(STAGEWRIGHT_SOURCE_DIR "/tests/data/runs"))
                                         .entryInfoList({QStringLiteral("*.stagewright")}))
            QTest::newRow(qPrintable(file.fileName())) << file.filePath();
    }
    void aReportOfAnyFile()
    {
        QFETCH(const QString, file);
        const std::string path = freshPath();
        QVERIFY(QFile::copy(file, QString::fromStdString(path)));
        const auto runs = RunFile::open(path, OpenMode::Read);
        QVERIFY(runs.has_value());
        const auto infos = (*runs)->runs();
        QVERIFY(infos.has_value());
        for (const RunInfo& info : *infos) {
            const auto whole = (*runs)->read(info.id), some = (*runs)->readForReport(info.id, -1);
            QVERIFY(whole && some);
            if (reportOf(*whole).has_value()) compareReports(*whole, *some, -1);
        }
    }

    void aDamagedStepIsCountedAndLeftOut()
    {
        const std::string path = freshPath();
        QVERIFY(samples::recordAndDie(path, {2, 4, 400, "1f1b"}));
        fs::remove(path + "-lock");
        QByteArray marks;
        std::int64_t whole = 0;
        {
            const auto file = RunFile::open(path, OpenMode::Read).value();
            whole = static_cast<std::int64_t>(file->read(1).value().timeline->spans().size());
            marks = QByteArray::fromHex(
                QByteArray::fromStdString(answer(*file, "SELECT hex(substr(data, 1, 16)) FROM step_log WHERE id=5")));
        }
        int changed = 0;
        QFile raw(QString::fromStdString(path));
        QVERIFY(raw.open(QIODevice::ReadWrite));
        const QByteArray bytes = raw.readAll();
        for (qsizetype at = bytes.indexOf(marks); at >= 0; at = bytes.indexOf(marks, at + 1)) {
            raw.seek(at + 12);
            raw.write("\x55\xaa", 2);
            ++changed;
        }
        raw.close();
        QVERIFY(changed > 0);
        fs::remove(path + "-wal");
        const auto file = RunFile::open(path, OpenMode::Read).value();
        const Run run = file->read(1).value();
        QCOMPARE(run.info.damagedBlocks, std::int64_t{1});
        QVERIFY(static_cast<std::int64_t>(run.timeline->spans().size()) < whole);
    }

    void theBytesOfAStep()
    {
        for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{3000}, std::size_t{200'000}}) {
            std::vector<std::byte> rows(size), back;
            for (std::size_t i = 0; i < size; ++i) rows[i] = static_cast<std::byte>(i * i / 7);
            auto data = packStep(rows);
            QVERIFY(unpackStep(data, back));
            QVERIFY(back == rows);
            for (std::size_t at = 0; at < data.size(); at += 1 + data.size() / 64) {
                data[at] ^= std::byte{0x10};
                QVERIFY(!unpackStep(data, back));
                data[at] ^= std::byte{0x10};
            }
            data.pop_back();
            QVERIFY(!unpackStep(data, back));
        }
    }

    void aFileThatIsTakenAway_data()
    {
        QTest::addColumn<QString>("how");
        for (const char* how : {"removed", "renamed", "replaced"}) QTest::newRow(how) << QString(how);
    }
    void aFileThatIsTakenAway()
    {
        QFETCH(QString, how);
        const std::string path = freshPath(), other = freshPath();
        samples::recordRun(other, {2, 4, 3, "gpipe"}).value();
        samples::Recording recording(path, small);
        for (int step = 0; step < 40; ++step) QVERIFY(recording.append().has_value());
        if (how == QStringLiteral("removed"))
            fs::remove(path);
        else
            fs::rename(how == QStringLiteral("renamed") ? path : other,
                       how == QStringLiteral("renamed") ? path + ".moved" : path);
        const auto lost = recording.append();
        QVERIFY(!lost.has_value());
        const std::string saved = path.substr(0, path.size() - 12) + ".saved.stagewright";
        QVERIFY2(lost.error().message.find(saved) != std::string::npos, lost.error().message.c_str());
        QVERIFY(!recording.finish().has_value());
        const auto file = RunFile::open(saved, OpenMode::Read).value();
        const Run run = file->read(1).value();
        QCOMPARE(run.info.state, RunState::Interrupted);
        QCOMPARE(run.info.steps, 40);
        QCOMPARE(static_cast<std::int64_t>(run.timeline->spans().size()), 40 * recording.spansPerStep());
        if (how == QStringLiteral("replaced")) { // the other file is as it was
            const auto there = RunFile::open(path, OpenMode::Read).value();
            QCOMPARE(there->runs().value().size(), std::size_t{1});
            QCOMPARE(there->read(1).value().info.steps, 3);
        }
    }

    // As `cp` and `>` do, the inode stays: what is written there since is left alone, and the runs are saved or said to
    // be lost.
    void aFileThatIsWrittenOver_data()
    {
        QTest::addColumn<bool>("empty");
        QTest::newRow("by another run file") << false;
        QTest::newRow("by nothing") << true;
    }
    void aFileThatIsWrittenOver()
    {
        QFETCH(bool, empty);
        const std::string path = freshPath(), other = freshPath();
        samples::recordRun(other, {2, 4, 3, "gpipe"}).value();
        const auto bytesOf = [](const std::string& file) {
            std::ifstream in(file, std::ios::binary);
            return std::string(std::istreambuf_iterator<char>(in), {});
        };
        const std::string bytes = empty ? std::string() : bytesOf(other);
        std::optional<samples::Recording> recording(std::in_place, path, small);
        // SQLite's log has started over
        for (int step = 0; step < 400; ++step) QVERIFY(recording->append().has_value());
        std::ofstream(path, std::ios::binary) << bytes;
        const auto lost = recording->append();
        QVERIFY(!lost.has_value());
        QVERIFY2(lost.error().message.find("another program wrote over it") != std::string::npos,
                 lost.error().message.c_str());
        const auto finished = recording->finish();
        QVERIFY(!finished.has_value());
        const std::string saved = path.substr(0, path.size() - 12) + ".saved.stagewright";
        QCOMPARE(lost.error().message.find(saved) != std::string::npos, fs::exists(saved));
        QCOMPARE(lost.error().message.find("could not be saved") != std::string::npos, !fs::exists(saved));
        if (fs::exists(saved)) {
            const Run run = RunFile::open(saved, OpenMode::Read).value()->read(1).value();
            QCOMPARE(run.info.steps, 400);
            QCOMPARE(static_cast<std::int64_t>(run.timeline->spans().size()), 400 * recording->spansPerStep());
        }
        recording.reset();
        QVERIFY(bytesOf(path) == bytes);
        QVERIFY(!fs::exists(path + "-wal"));
        if (!empty) QCOMPARE(RunFile::open(path, OpenMode::Read).value()->read(1).value().info.steps, 3);
    }

    void namesOfOneFileHaveOneLock()
    {
        const std::string path = freshPath(), link = freshPath(), hard = freshPath();
        fs::create_symlink(path, link);
        std::optional<samples::Recording> recording(std::in_place, path, small);
        QVERIFY(recording->append().has_value());
        const auto second = RunFile::open(link, OpenMode::Write);
        QVERIFY(second.has_value());
        QVERIFY(!(*second)->rename(1, "other").has_value());
        QVERIFY((*second)->missing().empty());
        QVERIFY(!fs::exists(link + "-lock"));
        QVERIFY(recording->finish().has_value());
        recording.reset();
        fs::create_hard_link(path, hard);
        QVERIFY(RunFile::open(hard, OpenMode::Read).has_value());
        const auto refused = RunFile::open(hard, OpenMode::Write);
        QVERIFY(!refused.has_value());
        QVERIFY2(refused.error().message.find("hard link") != std::string::npos, refused.error().message.c_str());
    }

    void aDamagedStepIsNoReasonNotToCompact()
    {
        const std::string path = freshPath();
        QVERIFY(samples::recordAndDie(path, small));
        sqlite3* database = nullptr;
        QCOMPARE(sqlite3_open(path.c_str(), &database), SQLITE_OK);
        QCOMPARE(sqlite3_exec(database, "UPDATE step_log SET data=zeroblob(9) WHERE id=(SELECT min(id) FROM step_log)",
                              nullptr, nullptr, nullptr),
                 SQLITE_OK);
        QCOMPARE(sqlite3_changes(database), 1);
        sqlite3_close(database);
        const auto file = RunFile::open(path, OpenMode::Write).value();
        QVERIFY(file->read(1).has_value()); // its views are made
        const auto compacted = file->compact();
        QVERIFY2(compacted.has_value(), compacted ? "" : compacted.error().message.c_str());
        const auto run = file->read(1);
        QVERIFY(run.has_value());
        QVERIFY(run->info.damagedBlocks > 0);
    }

    void aLockThatIsRemovedIsMadeAgain()
    {
        const std::string path = freshPath();
        samples::Recording recording(path, small);
        QVERIFY(recording.append().has_value());
        fs::remove(path + "-lock");
        QVERIFY(recording.append().has_value());
        QVERIFY(fs::exists(path + "-lock"));
        const auto second = RunFile::open(path, OpenMode::Write).value();
        QVERIFY(!second->rename(1, "other").has_value()); // never two writers
        QVERIFY(recording.finish().has_value());
    }

    // A reader that puts the whole log into the file cuts off the room that the recording keeps there: nobody wrote
    // over it.
    void aCheckpointOfAnotherIsNoForeignWrite()
    {
        const std::string path = freshPath();
        samples::Recording recording(path, small);
        int cut = 0;
        for (int step = 0; step < 20; ++step) {
            QVERIFY(recording.append().has_value());
            const auto before = fs::file_size(path);
            sqlite3* reader = nullptr;
            QCOMPARE(sqlite3_open(path.c_str(), &reader), SQLITE_OK);
            QCOMPARE(sqlite3_exec(reader, "PRAGMA wal_checkpoint(PASSIVE)", nullptr, nullptr, nullptr), SQLITE_OK);
            sqlite3_close(reader);
            cut += fs::file_size(path) < before ? 1 : 0;
        }
        QVERIFY(cut > 0);
        QVERIFY(recording.finish().has_value());
        QCOMPARE(*RunFile::open(path, OpenMode::Read).value()->intact(1), std::optional(true));
    }

    // Nothing that was announced is lost by a kill after SQLite's log was removed.
    void aLogThatIsRemovedIsMadeAgain()
    {
        const std::string path = freshPath();
        QVERIFY(samples::recordAndDie(path, small, [&](int step) {
            if (step == small.steps / 3) fs::remove(path + "-wal");
            if (step == small.steps / 2) fs::remove(path + "-shm");
        }));
        const auto file = RunFile::open(path, OpenMode::Read).value();
        QCOMPARE(file->runs()->at(0).steps, small.steps);
        QVERIFY(file->checkPages().has_value());
        QCOMPARE(*file->intact(1), std::optional(true));
    }

    void aMissingLogIsSaid()
    {
        const std::string path = freshPath();
        QVERIFY(samples::recordAndDie(path, small));
        {
            const auto first = RunFile::open(path, OpenMode::Read).value(); // does not put the log away
            QVERIFY(first->missing().empty());
        }
        QVERIFY(fs::exists(path + "-wal"));
        fs::remove(path + "-wal");
        fs::remove(path + "-shm");
        const auto file = RunFile::open(path, OpenMode::Read).value();
        QVERIFY(file->missing().find("-wal is not beside it") != std::string::npos);
    }

    void aMissingLogIsSaidWithoutARun()
    {
        const std::string path = freshPath();
        QVERIFY(RunFile::open(path, OpenMode::Create).has_value());
        QVERIFY(RunFile::open(path, OpenMode::Read).value()->missing().empty());
        { // as a writer leaves it that is killed before its run is in the file itself
            std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
            file.seekp(18);
            file.write("\x02\x02", 2);
        }
        const auto file = RunFile::open(path, OpenMode::Read).value();
        QVERIFY(file->runs().value().empty());
        QVERIFY2(file->missing().find("its runs may be missing") != std::string::npos, file->missing().c_str());
    }
};

QTEST_GUILESS_MAIN(TestRecording)
#include "tst_recording.moc"
