// A recording: what a step writes, what readers see of steps that are not folded yet, and that nothing is lost where the disk is full, the file is taken
// away, a reader is stuck or the log is gone.
#include <QtTest/QtTest>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "recorded_runs.h"
#include "traces/store/run_file.h"
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

std::int64_t written() // by this process, in all its calls
{
    std::ifstream in("/proc/self/io");
    for (std::string name; in >> name;) {
        std::int64_t count = 0;
        in >> count;
        if (name == "wchar:") return count;
    }
    return -1;
}

std::string answer(const RunFile& file, const std::string& sql)
{
    const auto table = file.query(sql);
    return table && !table->rows.empty() ? table->rows[0][0] : std::string("none");
}

// A child records so many steps and is killed where it stands.
bool recordAndDie(const std::string& path, const samples::RecordedShape& shape)
{
    const pid_t child = ::fork();
    if (child == 0) {
        samples::Recording recording(path, shape);
        for (int step = 0; step < shape.steps; ++step)
            if (!recording.append()) ::_exit(1);
        ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status);
}

constexpr samples::RecordedShape small{2, 4, 60, "1f1b"};

} // namespace

class TestRecording : public QObject {
    Q_OBJECT

private:
    QTemporaryDir m_folder;
    int m_files = 0;

    std::string freshPath() { return m_folder.filePath(QStringLiteral("file%1.stagewright").arg(++m_files)).toStdString(); }

private slots:
    // A step of 2 ranks and 4 microbatches: at most 10 KiB, checkpoints included.
    void aStepWritesLittle()
    {
        const std::string path = freshPath();
        samples::Recording recording(path, small);
        for (int step = 0; step < 20; ++step) QVERIFY(recording.append().has_value());
        const std::int64_t before = written();
        for (int step = 0; step < 400; ++step) QVERIFY(recording.append().has_value());
        const std::int64_t each = (written() - before) / 400;
        QVERIFY2(before > 0 && each > 500 && each <= 10 * 1024, qPrintable(QStringLiteral("%1 bytes").arg(each)));
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
                (void)second->query("WITH RECURSIVE n(value) AS (SELECT count(*) FROM run UNION ALL SELECT value+1 FROM n WHERE value<100000000000) SELECT max(value) FROM n", 10, own);
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
            QVERIFY2(each <= 2.5 * kept, qPrintable(QStringLiteral("%1 of %2 bytes").arg(each).arg(kept)));
        }
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
        const std::string spans = answer(*reader, "SELECT count(*) FROM spans"), edges = answer(*reader, "SELECT count(*) FROM edges"), steps = answer(*reader, "SELECT count(*) FROM steps");
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

        QVERIFY(recordAndDie(killed, small));
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

    void aDamagedStepIsCountedAndLeftOut()
    {
        const std::string path = freshPath();
        QVERIFY(recordAndDie(path, {2, 4, 400, "1f1b"}));
        fs::remove(path + "-lock");
        QByteArray marks;
        std::int64_t whole = 0;
        {
            const auto file = RunFile::open(path, OpenMode::Read).value();
            whole = static_cast<std::int64_t>(file->read(1).value().timeline->spans().size());
            marks = QByteArray::fromHex(QByteArray::fromStdString(answer(*file, "SELECT hex(substr(data, 1, 16)) FROM step_log WHERE id=5")));
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
            fs::rename(how == QStringLiteral("renamed") ? path : other, how == QStringLiteral("renamed") ? path + ".moved" : path);
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

    void aMissingLogIsSaid()
    {
        const std::string path = freshPath();
        QVERIFY(recordAndDie(path, small));
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
};

QTEST_GUILESS_MAIN(TestRecording)
#include "tst_recording.moc"
