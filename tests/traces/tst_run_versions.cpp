// Run files of other versions, and files that are none.
#include <QtTest/QtTest>

#include <filesystem>
#include <fstream>

#include "run_folder.h"
#include "sample_runs.h"
#include "traces/store/run_file.h"

using namespace stagewright;
namespace fs = std::filesystem;

class TestRunVersions : public QObject, RunFolder {
    Q_OBJECT

private slots:
    void foreignAndNewerFilesAreRefused()
    {
        const auto code = [](const Result<std::unique_ptr<RunFile>>& file) {
            return file ? ErrorCode::Cancelled : file.error().code;
        };
        QCOMPARE(code(RunFile::open(freshPath(), OpenMode::Read)), ErrorCode::Unreadable);
        QCOMPARE(code(RunFile::open(freshPath(), OpenMode::Write)), ErrorCode::Unreadable);
        const std::string text = freshPath();
        std::ofstream(text) << "this is not a database, but it is long enough to be taken for one by its size";
        for (const OpenMode mode : {OpenMode::Read, OpenMode::Write, OpenMode::Create})
            QCOMPARE(code(RunFile::open(text, mode)), ErrorCode::Unreadable);
        const std::string newer = freshPath();
        RunFile::open(newer, OpenMode::Create).value()->add(samples::simulatedRun("1f1b", 2, 2)).value();
        { // user_version is at byte 60 of the file, big endian
            std::fstream bytes(newer, std::ios::in | std::ios::out | std::ios::binary);
            bytes.seekp(60);
            bytes.write("\0\0\0\x63", 4);
        }
        const auto refused = RunFile::open(newer, OpenMode::Read);
        QCOMPARE(code(refused), ErrorCode::Unreadable);
        QVERIFY(refused.error().message.find("99") != std::string::npos);
        QVERIFY(refused.error().remedy.find("newer") != std::string::npos);
    }

    void olderFilesOpen_data()
    {
        QTest::addColumn<int>("version");
        QTest::newRow("version 1") << 1;
        QTest::newRow("version 2") << 2;
        QTest::newRow("version 3") << 3;
        QTest::newRow("version 4") << 4;
        QTest::newRow("version 5") << 5;
        QTest::newRow("version 6") << 6;
    }
    void olderFilesOpen()
    {
        QFETCH(int, version);
        const std::string path = freshPath();
        fs::copy_file(STAGEWRIGHT_SOURCE_DIR "/tests/data/runs/version" + std::to_string(version) + ".stagewright",
                      path);
        const Run simulated = samples::simulatedRun("zb-h1", 4, 8, 0.25);
        Run asItIs;
        {
            auto unchanged = RunFile::open(path, OpenMode::Read);
            VERIFY_RESULT(unchanged);
            auto there = (*unchanged)->read(1);
            VERIFY_RESULT(there);
            QCOMPARE((*unchanged)->blocks(1).value().size(), there->timeline->tracks().size());
            QVERIFY((*unchanged)->overview(1, 100).has_value());
            asItIs = std::move(*there);
        }
        QVERIFY(*asItIs.schedule == *simulated.schedule);
        QCOMPARE(asItIs.timeline->spans().size(), simulated.timeline->spans().size());
        auto file = RunFile::open(path, OpenMode::Write); // brought up to date
        VERIFY_RESULT(file);
        auto run = (*file)->read(1);
        VERIFY_RESULT(run);
        QCOMPARE(QString::fromStdString(samples::difference(asItIs, *run)), QString());
        if (version == 1) QCOMPARE(QString::fromStdString(samples::difference(simulated, *run)), QString());
        const auto indexes = (*file)->query(
            "SELECT name FROM sqlite_schema WHERE type='index' AND tbl_name='span_block' AND sql IS NOT NULL");
        VERIFY_RESULT(indexes);
        QCOMPARE(indexes->rows.size(), std::size_t{1});
        QCOMPARE(indexes->rows[0][0], std::string("span_block_bounds"));
    }

    // A recording of version 6 that was killed: its steps had no digest yet.
    void killedOlderRecording()
    {
        const std::string path = freshPath();
        fs::copy_file(STAGEWRIGHT_SOURCE_DIR "/tests/data/runs/killed6.stagewright", path);
        const auto asItIs = RunFile::open(path, OpenMode::Read);
        VERIFY_RESULT(asItIs);
        const auto before = (*asItIs)->read(1);
        VERIFY_RESULT(before);
        QVERIFY(before->info.steps > 2);
        QVERIFY((*asItIs)->query("SELECT count(*) FROM step_log")->rows[0][0] != "0");
        QVERIFY((*asItIs)->checkPages().has_value());
        QCOMPARE(*(*asItIs)->intact(1), std::optional(true));
        const auto file = RunFile::open(path, OpenMode::Write);
        VERIFY_RESULT(file);
        QCOMPARE((*file)->query("SELECT count(*) FROM step_log")->rows[0][0], std::string("0"));
        QVERIFY((*file)->checkPages().has_value());
        QCOMPARE(*(*file)->intact(1), std::optional(true));
        QCOMPARE(QString::fromStdString(samples::difference(*before, (*file)->read(1).value())), QString());
    }
};

QTEST_APPLESS_MAIN(TestRunVersions)
#include "tst_run_versions.moc"
