// The stream of steps: replayed elsewhere it is the same run, cut anywhere, once; damaged and hostile streams end in a
// sentence.
#include <QtTest/QtTest>

#include <filesystem>
#include <fstream>
#include <random>

#include <csignal>
#include <sys/resource.h>

#include "recorded_runs.h"
#include "traces/store/run_file.h"
#include "traces/store/step_blocks.h"
#include "traces/store/step_stream.h"

using namespace stagewright;

namespace {

std::vector<std::byte> bytesIn(const std::string& path)
{
    std::ifstream in(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
    return {bytes.begin(), bytes.end()};
}

// "" where both are the same run, but for its id and name.
QString difference(const Run& a, const Run& b)
{
    if (a.timeline->spans().size() != b.timeline->spans().size())
        return QStringLiteral("%1 and %2 spans").arg(a.timeline->spans().size()).arg(b.timeline->spans().size());
    for (std::size_t i = 0; i < a.timeline->spans().size(); ++i)
        if (a.timeline->spans()[i].start != b.timeline->spans()[i].start ||
            a.timeline->spans()[i].op != b.timeline->spans()[i].op)
            return QStringLiteral("span %1").arg(i);
    if (a.timeline->memory().size() != b.timeline->memory().size()) return QStringLiteral("memory events");
    if (a.timeline->edges().size() != b.timeline->edges().size()) return QStringLiteral("edges");
    if (a.metrics.size() != b.metrics.size() || a.metrics.front().values != b.metrics.front().values)
        return QStringLiteral("metrics");
    if (a.configuration != b.configuration || a.environment != b.environment) return QStringLiteral("texts");
    if (a.info.state != b.info.state || a.info.steps != b.info.steps || a.info.warmupSteps != b.info.warmupSteps)
        return QStringLiteral("state or steps");
    return {};
}

} // namespace

class TestStepStream : public QObject {
    Q_OBJECT

private:
    QTemporaryDir m_folder;
    int m_files = 0;
    std::string m_source, m_streamPath;
    std::vector<std::byte> m_stream;

    std::string freshPath(const char* suffix = "stagewright")
    {
        return m_folder.filePath(QString("file%1.%2").arg(++m_files).arg(suffix)).toStdString();
    }

private slots:
    void initTestCase() // recorded as a recording is: after each step what it added
    {
        m_source = freshPath();
        m_streamPath = freshPath("stream");
        auto stream = StepStreamWriter::create(m_streamPath).value();
        QVERIFY(!StepStreamWriter::create(m_streamPath).has_value()); // never over another one
        samples::RecordedShape shape;
        shape.steps = 12;
        {
            samples::Recording recording(m_source, shape);
            const auto reader = RunFile::open(m_source, OpenMode::Read).value();
            QVERIFY(stream->append(*reader, recording.id()).has_value());
            for (int step = 0; step < shape.steps; ++step) {
                QVERIFY(recording.append().has_value());
                QVERIFY(stream->append(*reader, recording.id()).has_value());
            }
            QVERIFY(recording.finish().has_value());
        }
        const auto reader = RunFile::open(m_source, OpenMode::Read).value();
        QVERIFY(stream->end(*reader, 1).has_value());
        m_stream = bytesIn(m_streamPath);
    }

    void theReplayIsTheRun()
    {
        const std::string path = freshPath();
        samples::recordRun(path, {2, 4, 3}).value(); // the file has runs of its own
        {
            auto replay = StreamReplay::open(path).value();
            std::mt19937 random(1);
            for (std::size_t at = 0; at < m_stream.size();) {
                const std::size_t count = std::min<std::size_t>(1 + random() % 5000, m_stream.size() - at);
                const auto taken = replay->take(std::span(m_stream).subspan(at, count));
                QVERIFY2(taken.has_value(), taken ? "" : taken.error().message.c_str());
                at += count;
            }
            QCOMPARE(replay->taken(), static_cast<std::int64_t>(m_stream.size()));
            QCOMPARE(replay->runs().size(), std::size_t{1});
            QVERIFY(replay->runs().front().ended);
            QCOMPARE(replay->runs().front().here, std::int64_t{2});
            QCOMPARE(replay->runs().front().steps, 12);
        }
        const auto there = RunFile::open(m_source, OpenMode::Read).value();
        const auto here = RunFile::open(path, OpenMode::Read).value();
        QCOMPARE(difference(there->read(1).value(), here->read(2).value()), QString());
        QCOMPARE(here->intact(2).value(), std::optional<bool>(true));
        QCOMPARE(here->overview(2, 100).value().busyByTrack.size(), there->overview(1, 100).value().busyByTrack.size());
    }

    // While it is replayed a step is one row, as a recording has it; at the end it is in the tables. A step writes
    // little.
    void aStepIsOneRow()
    {
        const std::string source = freshPath(), streamPath = freshPath("stream"), path = freshPath();
        constexpr int steps = 300;
        samples::Recording recording(source, {2, 4, steps, "1f1b"});
        auto stream = StepStreamWriter::create(streamPath).value();
        const auto reader = RunFile::open(source, OpenMode::Read).value();
        auto replay = StreamReplay::open(path).value();
        std::size_t sent = 0;
        const auto send = [&] {
            const std::vector<std::byte> bytes = bytesIn(streamPath);
            const auto taken = replay->take(std::span(bytes).subspan(sent));
            sent = bytes.size();
            return taken;
        };
        std::int64_t writtenByReplay = 0;
        for (int step = 0; step < steps; ++step) {
            QVERIFY(recording.append().has_value());
            QVERIFY(stream->append(*reader, 1).has_value());
            const std::int64_t before = samples::writtenBytes();
            QVERIFY(send().has_value());
            if (step >= 20) writtenByReplay += samples::writtenBytes() - before;
        }
        const std::int64_t each = writtenByReplay / (steps - 20);
        QVERIFY2(each > 500 && each <= 10 * 1024, qPrintable(QStringLiteral("%1 bytes").arg(each)));
        const auto here = RunFile::open(path, OpenMode::Read).value();
        const auto count = [&](const char* table) {
            return QString::fromStdString(here->query(std::string("SELECT count(*) FROM main.") + table)->rows[0][0]);
        };
        QCOMPARE(count("step_log"), QString::number(steps));
        QCOMPARE(count("segment"), QStringLiteral("0"));
        Run live = here->read(1).value();
        QCOMPARE(live.info.state, RunState::Recording);
        QCOMPARE(live.info.steps, steps);
        QCOMPARE(live.timeline->spans().size(), reader->read(1)->timeline->spans().size());
        QCOMPARE(here->readStep(1, 150)->timeline->spans().size(), static_cast<std::size_t>(recording.spansPerStep()));
        QVERIFY(recording.finish().has_value());
        QVERIFY(stream->end(*RunFile::open(source, OpenMode::Read).value(), 1).has_value());
        QVERIFY(send().has_value());
        QCOMPARE(count("step_log"), QStringLiteral("0"));
        QCOMPARE(difference(reader->read(1).value(), here->read(1).value()), QString());
        QCOMPARE(here->intact(1).value(), std::optional<bool>(true));
    }

    // Without its end, as when the connection is lost for good: in the tables all the same, and interrupted.
    void aReplayWithoutItsEnd()
    {
        const std::string path = freshPath();
        (void)StreamReplay::open(path).value()->take(std::span(m_stream).first(m_stream.size() * 3 / 4));
        const auto here = RunFile::open(path, OpenMode::Read).value();
        const Run run = here->read(1).value();
        QCOMPARE(run.info.state, RunState::Interrupted);
        QVERIFY(run.info.steps > 3 && run.info.steps == run.timeline->steps());
        QCOMPARE(here->query("SELECT count(*) FROM main.step_log")->rows[0][0], std::string("0"));
        QVERIFY(!std::filesystem::exists(path + "-wal"));
    }

    // Cut at random bytes, by a killed reader: complete steps are there, and it goes on in the same run.
    void cutAnywhere()
    {
        const auto there = RunFile::open(m_source, OpenMode::Read).value();
        const Run whole = there->read(1).value();
        std::mt19937 random(2);
        for (int round = 0; round < 20; ++round) {
            const std::string path = freshPath();
            std::vector<ReplayedRun> known;
            int before = 0;
            for (const std::size_t cut : {random() % m_stream.size(), random() % m_stream.size(), m_stream.size()}) {
                auto replay = StreamReplay::open(path, known, [&](const std::vector<ReplayedRun>& runs) {
                                  known = runs;
                                  return Result<void>();
                              }).value();
                QVERIFY(replay->take(std::span(m_stream).first(cut)).has_value());
                for (const ReplayedRun& run : replay->runs()) {
                    QVERIFY(run.steps >= before || cut < m_stream.size());
                    before = std::max(before, run.steps);
                }
                known = replay->runs();
            }
            const auto here = RunFile::open(path, OpenMode::Read).value();
            QCOMPARE(here->runs().value().size(), std::size_t{1});
            QCOMPARE(difference(whole, here->read(1).value()), QString());
        }
    }

    // A disk that is full for a while: the stream ends with a whole step, and the next call sends what was missing.
    void aFullDiskLeavesWholeSteps()
    {
        const std::string source = freshPath(), streamPath = freshPath("stream"), path = freshPath();
        samples::RecordedShape shape;
        shape.steps = 6;
        auto stream = StepStreamWriter::create(streamPath).value();
        auto replay = StreamReplay::open(path).value();
        {
            samples::Recording recording(source, shape);
            const auto reader = RunFile::open(source, OpenMode::Read).value();
            rlimit usual{};
            ::getrlimit(RLIMIT_FSIZE, &usual);
            ::signal(SIGXFSZ, SIG_IGN);
            for (int step = 0; step < shape.steps; ++step) {
                QVERIFY(recording.append().has_value());
                const std::size_t before = bytesIn(streamPath).size();
                if (step == 2 || step == 3) { // the second after a failure fails as well
                    const rlimit little{before + 100, usual.rlim_max};
                    ::setrlimit(RLIMIT_FSIZE, &little);
                    const auto sent = stream->append(*reader, recording.id());
                    ::setrlimit(RLIMIT_FSIZE, &usual);
                    QVERIFY(!sent.has_value());
                    QVERIFY2(sent.error().message.find("too large") != std::string::npos, sent.error().message.c_str());
                    QCOMPARE(bytesIn(streamPath).size(), before);
                } else {
                    QVERIFY(stream->append(*reader, recording.id()).has_value());
                }
            }
            QVERIFY(recording.finish().has_value());
        }
        const auto reader = RunFile::open(source, OpenMode::Read).value();
        QVERIFY(stream->end(*reader, 1).has_value());
        const auto bytes = bytesIn(streamPath);
        // torn bytes that were read before they were taken back are forgotten
        const std::size_t part = bytes.size() / 2;
        QVERIFY(replay->take(std::span(bytes).first(part)).has_value());
        replay->rewind();
        QVERIFY(replay->take(std::span(bytes).subspan(static_cast<std::size_t>(replay->taken()))).has_value());
        replay.reset();
        const auto here = RunFile::open(path, OpenMode::Read).value();
        QCOMPARE(difference(reader->read(1).value(), here->read(1).value()), QString());
    }

    void damageEndsInASentence()
    {
        std::mt19937 random(3);
        int refused = 0;
        for (int round = 0; round < 80; ++round) {
            std::vector<std::byte> damaged = m_stream;
            damaged[random() % damaged.size()] ^= static_cast<std::byte>(1 + random() % 255);
            const std::string path = freshPath();
            {
                auto replay = StreamReplay::open(path).value();
                const auto taken = replay->take(damaged);
                if (taken) { // a length that promises more than has come
                    QVERIFY(replay->taken() < static_cast<std::int64_t>(damaged.size()));
                    continue;
                }
                ++refused;
                QCOMPARE(taken.error().code, ErrorCode::Unreadable);
                QVERIFY(taken.error().message.find("the stream of steps is damaged at byte") != std::string::npos);
            }
            const auto here = RunFile::open(path, OpenMode::Read).value();
            const auto infos = here->runs().value();
            for (const RunInfo& info : infos) QCOMPARE(here->read(info.id).value().info.damagedBlocks, std::int64_t{0});
        }
        QVERIFY(refused > 60);
    }

    // Blocks with right checksums and wrong content.
    void hostileBlocks()
    {
        const auto refused = [this](const std::vector<std::vector<std::byte>>& blocks) {
            std::vector<std::byte> stream = streamHead();
            for (const auto& block : blocks) stream.insert(stream.end(), block.begin(), block.end());
            auto replay = StreamReplay::open(freshPath()).value();
            const auto taken = replay->take(stream);
            return !taken && taken.error().code == ErrorCode::Unreadable;
        };
        const auto text = [](std::string_view bytes) { return std::as_bytes(std::span(bytes.data(), bytes.size())); };
        // the first block of the real stream is that of a run that starts
        StepBlock first;
        std::size_t length = 0;
        QCOMPARE(readBlock(std::span(m_stream).subspan(streamHeadBytes), first, length), BlockState::Whole);
        QCOMPARE(first.kind, StepBlockKind::Begin);
        const std::vector<std::byte> begin = blockBytes(StepBlockKind::Begin, 1, first.payload);
        QVERIFY(!refused({begin}));
        QVERIFY(refused({begin, begin}));
        QVERIFY(refused({blockBytes(StepBlockKind::Begin, 1, text("no row"))}));
        QVERIFY(refused({blockBytes(StepBlockKind::Begin, 1, {})}));
        QVERIFY(refused({blockBytes(StepBlockKind::Rows, 1, text("x"))}));
        QVERIFY(refused({begin, blockBytes(StepBlockKind::Commit, 2, {})}));
        QVERIFY(refused({begin, blockBytes(StepBlockKind::Commit, 1, text("short"))}));
        RowWriter rows;
        rows.number(-1);
        QVERIFY(refused({begin, blockBytes(StepBlockKind::Commit, 1, rows.bytes())}));
        // rows of a table that is not part of a recording, and with too few columns
        for (const std::string_view row :
             {std::string_view("\x0d\x00", 2), std::string_view("\x00\x01\x05", 3), std::string_view("\xff\x00", 2)}) {
            std::vector<std::byte> commit;
            for (std::span<const std::byte> rest = std::span(m_stream).subspan(streamHeadBytes); commit.empty();
                 rest = rest.subspan(length)) {
                StepBlock block;
                QCOMPARE(readBlock(rest, block, length), BlockState::Whole);
                if (block.kind == StepBlockKind::Commit) commit = blockBytes(StepBlockKind::Commit, 1, block.payload);
            }
            QVERIFY(refused({begin, blockBytes(StepBlockKind::Rows, 1, text(row)), commit}));
        }
        // of another version
        std::vector<std::byte> newer = m_stream;
        newer[8] = std::byte{99};
        const auto taken = StreamReplay::open(freshPath()).value()->take(newer);
        QVERIFY(!taken && taken.error().message.find("its run file has version 99") != std::string::npos);
    }

    void aRunThatWasNotKept()
    {
        const std::string path = freshPath();
        const std::string streamPath = freshPath("stream");
        {
            auto stream = StepStreamWriter::create(streamPath).value();
            const auto reader = RunFile::open(m_source, OpenMode::Read).value();
            QVERIFY(stream->append(*reader, 1).has_value());
            QVERIFY(stream->remove(1).has_value());
        }
        auto replay = StreamReplay::open(path).value();
        QVERIFY(replay->take(bytesIn(streamPath)).has_value());
        QCOMPARE(replay->runs().front().here, std::int64_t{0});
        replay.reset();
        QVERIFY(RunFile::open(path, OpenMode::Read).value()->runs().value().empty());
    }

    // A recorder that was killed anywhere and started again: its stream goes on after the last whole step, with the new
    // run; one that read what was cut off comes to the same.
    void aKilledWriterGoesOn()
    {
        const std::string both = freshPath();
        std::filesystem::copy_file(m_source, both);
        {
            samples::RecordedShape shape;
            shape.steps = 3;
            samples::Recording recording(both, shape);
            for (int step = 0; step < shape.steps; ++step) QVERIFY(recording.append().has_value());
            QVERIFY(recording.finish().has_value());
            QCOMPARE(recording.id(), std::int64_t{2});
        }
        const auto reader = RunFile::open(both, OpenMode::Read).value();
        std::mt19937 random(5);
        for (int round = 0; round < 12; ++round) {
            const std::size_t cut = round == 0 ? 0 : round == 1 ? streamHeadBytes : random() % m_stream.size();
            if (cut > 0 && cut < streamHeadBytes) continue;
            const std::string path = freshPath(), streamPath = freshPath("stream");
            std::ofstream(streamPath, std::ios::binary)
                .write(reinterpret_cast<const char*>(m_stream.data()), static_cast<std::streamsize>(cut));
            auto replay = StreamReplay::open(path).value();
            QVERIFY(replay->take(std::span(m_stream).first(cut)).has_value());
            const std::int64_t whole = replay->taken();
            auto stream = StepStreamWriter::reopen(streamPath).value();
            QCOMPARE(static_cast<std::int64_t>(bytesIn(streamPath).size()),
                     std::max<std::int64_t>(whole, streamHeadBytes));
            QVERIFY(stream->end(*reader, 2).has_value());
            replay->rewind();
            const auto bytes = bytesIn(streamPath);
            QVERIFY(replay->take(std::span(bytes).subspan(static_cast<std::size_t>(replay->taken()))).has_value());
            const std::int64_t here = replay->runs().back().here;
            replay.reset();
            QCOMPARE(
                difference(reader->read(2).value(), RunFile::open(path, OpenMode::Read).value()->read(here).value()),
                QString());
        }
        const std::string other = freshPath("stream");
        std::ofstream(other) << "not a stream of steps, but text";
        QCOMPARE(StepStreamWriter::reopen(other).error().code, ErrorCode::Unreadable);
        QVERIFY(StepStreamWriter::reopen(freshPath("stream")).has_value()); // a new one
    }

    // A whole run at once, as from an engine that is imported: the same.
    void wholeRunAtOnce()
    {
        const std::string path = freshPath();
        const std::string streamPath = freshPath("stream");
        const auto reader = RunFile::open(m_source, OpenMode::Read).value();
        QVERIFY(StepStreamWriter::create(streamPath).value()->end(*reader, 1).has_value());
        QVERIFY(StreamReplay::open(path).value()->take(bytesIn(streamPath)).has_value());
        QCOMPARE(difference(reader->read(1).value(), RunFile::open(path, OpenMode::Read).value()->read(1).value()),
                 QString());
    }
};

QTEST_GUILESS_MAIN(TestStepStream)
#include "tst_step_stream.moc"
