// Notes, bookmarks and saved queries: kept in the run file, carried to re-runs, merged, safe in damaged files.
#include <filesystem>

#include <unistd.h>

#include <QTest>

#include "run_folder.h"
#include "sample_runs.h"
#include "traces/run/note_text.h"
#include "traces/store/run_file.h"

using namespace stagewright;
namespace fs = std::filesystem;

class TestNotes : public QObject {
    Q_OBJECT

    std::string m_dir;
    int m_count = 0;
    std::string freshPath() { return m_dir + "/n" + std::to_string(++m_count) + ".stagewright"; }

    static Note onOp(const Run& run, const char* op, int rank, const char* text)
    {
        Note note;
        for (SpanId id = 0; id < run.timeline->spans().size(); ++id)
            if (run.timeline->trackOf(id).rank == rank && run.timeline->nameOf(run.timeline->spans()[id]) == op)
                note = noteOnSpan(*run.timeline, id);
        note.text = text;
        return note;
    }
    static Note onRange(Nanos begin, Nanos end, const char* text)
    {
        Note note;
        note.anchor = NoteAnchor::Range;
        note.begin = begin;
        note.end = end;
        note.text = text;
        return note;
    }

private slots:
    void initTestCase()
    {
        m_dir = (fs::temp_directory_path() / ("stagewright_notes_" + std::to_string(::getpid()))).string();
        fs::create_directories(m_dir);
    }
    void cleanupTestCase() { fs::remove_all(m_dir); }

    void notesComeBackAsTheyWere()
    {
        const std::string path = freshPath();
        const Run run = samples::simulatedRun("1f1b", 4, 8);
        Note first = onOp(run, "2F3", 2, "late, why?\nsecond line, ünïcode");
        QCOMPARE(first.op, std::string("2F3"));
        Note second = onRange(10, 500, "drain");
        second.rank = 1;
        second.lastRank = 2;
        {
            auto file = RunFile::open(path, OpenMode::Create).value();
            VERIFY_RESULT(file->add(run));
            VERIFY_RESULT(file->setNotes(1, {first, second}));
        }
        first.id = 1;
        second.id = 2;
        auto file = RunFile::open(path, OpenMode::Read).value();
        QVERIFY(file->notes(1).value() == (std::vector<Note>{first, second}));
        // by SQL too, and unknown runs are refused
        auto table = file->query("SELECT text FROM notes WHERE run=1 ORDER BY note");
        VERIFY_RESULT(table);
        QCOMPARE(table->rows.size(), std::size_t(2));
        QCOMPARE(table->rows[1][0], std::string("drain"));
        QVERIFY(!file->setNotes(1, {}));
        auto writing = RunFile::open(path, OpenMode::Write).value();
        QVERIFY(!writing->setNotes(7, {first}));
        VERIFY_RESULT(writing->setNotes(1, {second}));
        QVERIFY(writing->notes(1).value() == (std::vector<Note>{second})); // it keeps its number
    }

    void anchorsFindTheirOpAgain()
    {
        const Run run = samples::simulatedRun("zb-h1", 4, 8);
        const Timeline& timeline = *run.timeline;
        for (SpanId id = 0; id < timeline.spans().size(); ++id)
            QCOMPARE(spanOfNote(timeline, noteOnSpan(timeline, id)), id);
        Note gone = noteOnSpan(timeline, 0);
        gone.step = 5;
        QCOMPARE(spanOfNote(timeline, gone), noSpan);
        gone.step = 0;
        gone.op = "9F9";
        QCOMPARE(spanOfNote(timeline, gone), noSpan);
    }

    void placesAreToldInTheRunsUnit()
    {
        Note range = onRange(4 * rankShare, 7 * rankShare, "");
        QCOMPARE(placeText(range, rankShare), std::string("all ranks, 4 to 7 units, step 1"));
        range.rank = 1;
        range.lastRank = 2;
        range.step = 3;
        QCOMPARE(placeText(range), std::string("ranks 1 to 2, 40.32 to 70.56 ms, step 4"));
        range.lastRank = 1;
        QCOMPARE(placeText(range, rankShare), std::string("rank 1, 4 to 7 units, step 4"));
        Note op;
        op.rank = 2;
        op.op = "2F0";
        QCOMPARE(placeText(op, rankShare), std::string("2F0 on rank 2, step 1"));
    }

    void opNotesAreCarriedToARunOfTheSameSchedule()
    {
        auto file = RunFile::open(freshPath(), OpenMode::Create).value();
        const Run run = samples::simulatedRun("1f1b", 4, 8);
        VERIFY_RESULT(file->add(run));
        VERIFY_RESULT(file->setNotes(1, {onOp(run, "3B1", 3, "here"), onRange(0, 5, "not carried")}));
        const Run again = samples::simulatedRun("1f1b", 4, 8, 0.25); // other times
        VERIFY_RESULT(file->add(again));
        VERIFY_RESULT(file->add(samples::simulatedRun("gpipe", 4, 8)));
        QVERIFY(file->notes(2).value().empty());
        const auto carried = file->notes(2, true).value();
        QCOMPARE(carried.size(), std::size_t(1));
        QCOMPARE(carried[0].fromRun, std::int64_t(1));
        const SpanId span = spanOfNote(*again.timeline, carried[0]);
        QVERIFY(span != noSpan);
        QCOMPARE(again.timeline->nameOf(again.timeline->spans()[span]), std::string("3B1"));
        QVERIFY(file->notes(3, true).value().empty()); // another schedule
        // Carried notes are not written as the run's own; an equal one of its own hides them.
        VERIFY_RESULT(file->setNotes(2, carried));
        QVERIFY(file->notes(2).value().empty());
        VERIFY_RESULT(file->setNotes(2, {onOp(again, "3B1", 3, "here")}));
        QCOMPARE(file->notes(2, true).value().size(), std::size_t(1));
        VERIFY_RESULT(file->remove(1));
        QCOMPARE(file->notes(2, true).value()[0].fromRun, std::int64_t(0));
    }

    void bookmarksHaveOneRunASlot()
    {
        auto file = RunFile::open(freshPath(), OpenMode::Create).value();
        const Run run = samples::simulatedRun("1f1b", 2, 4);
        VERIFY_RESULT(file->add(run));
        VERIFY_RESULT(file->add(run));
        Bookmark first{3, 1, 0, 100, 900, std::nullopt};
        VERIFY_RESULT(file->setBookmark(first));
        Bookmark moved{3, 2, 0, 5, 50, onOp(run, "1F2", 1, "")};
        VERIFY_RESULT(file->setBookmark(moved));
        const auto bookmarks = file->bookmarks().value();
        QCOMPARE(bookmarks.size(), std::size_t(1));
        QCOMPARE(bookmarks[0].run, std::int64_t(2));
        QCOMPARE(bookmarks[0].selection->op, std::string("1F2"));
        QVERIFY(!file->setBookmark({0, 1, 0, 0, 1, std::nullopt}));
        QVERIFY(!file->setBookmark({10, 1, 0, 0, 1, std::nullopt}));
        QVERIFY(!file->setBookmark({1, 9, 0, 0, 1, std::nullopt}));
        VERIFY_RESULT(file->remove(2));
        QVERIFY(file->bookmarks().value().empty());
    }

    void queriesAreSavedByName()
    {
        auto file = RunFile::open(freshPath(), OpenMode::Create).value();
        VERIFY_RESULT(file->saveQuery({"b", "SELECT 2", ""}));
        VERIFY_RESULT(file->saveQuery({"a", "SELECT 1", "one"}));
        VERIFY_RESULT(file->saveQuery({"b", "SELECT 3", "three"}));
        QVERIFY(!file->saveQuery({"", "SELECT 3", ""}));
        QVERIFY(file->savedQueries().value() ==
                (std::vector<SavedQuery>{{"a", "SELECT 1", "one"}, {"b", "SELECT 3", "three"}}));
        VERIFY_RESULT(file->removeQuery("a"));
        QCOMPARE(file->savedQueries().value().size(), std::size_t(1));
    }

    void mergingBringsThem()
    {
        const std::string other = freshPath();
        const Run run = samples::simulatedRun("1f1b", 2, 4);
        {
            auto file = RunFile::open(other, OpenMode::Create).value();
            VERIFY_RESULT(file->add(run));
            VERIFY_RESULT(file->setNotes(1, {onOp(run, "0F0", 0, "first")}));
            VERIFY_RESULT(file->setBookmark({4, 1, 0, 0, 9, std::nullopt}));
            VERIFY_RESULT(file->setBookmark({5, 1, 0, 0, 9, std::nullopt}));
            VERIFY_RESULT(file->saveQuery({"q", "SELECT 1", ""}));
        }
        auto file = RunFile::open(freshPath(), OpenMode::Create).value();
        VERIFY_RESULT(file->add(run));
        VERIFY_RESULT(file->setBookmark({4, 1, 0, 7, 8, std::nullopt}));
        VERIFY_RESULT(file->saveQuery({"q", "SELECT 2", ""}));
        VERIFY_RESULT(file->merge(other));
        QCOMPARE(file->notes(2).value().size(), std::size_t(1));
        const auto bookmarks = file->bookmarks().value();
        QCOMPARE(bookmarks.size(), std::size_t(2));
        QCOMPARE(bookmarks[0].run, std::int64_t(1)); // slot 4 was here before
        QCOMPARE(bookmarks[1].run, std::int64_t(2));
        QCOMPARE(file->savedQueries().value()[0].sql, std::string("SELECT 2"));
        // a file of version 1 has none, and is merged all the same
        VERIFY_RESULT(file->merge(STAGEWRIGHT_SOURCE_DIR "/tests/data/runs/version1.stagewright"));
        QCOMPARE(file->runs()->size(), std::size_t(3));
        QVERIFY(file->notes(3).value().empty());
    }

    void filesOfVersionOneAreReadAndBroughtUp()
    {
        const std::string path = freshPath();
        fs::copy_file(STAGEWRIGHT_SOURCE_DIR "/tests/data/runs/version1.stagewright", path);
        {
            auto file = RunFile::open(path, OpenMode::Read).value();
            QVERIFY(file->notes(1, true).value().empty());
            QVERIFY(file->bookmarks().value().empty());
            QVERIFY(file->savedQueries().value().empty());
            auto table = file->query("SELECT * FROM notes");
            VERIFY_RESULT(table);
            QVERIFY(table->rows.empty());
            QCOMPARE(file->query("PRAGMA user_version").has_value(), false);
        }
        auto file = RunFile::open(path, OpenMode::Write).value();
        const Run run = file->read(1).value();
        VERIFY_RESULT(file->setNotes(1, {onOp(run, "0F0", 0, "now")}));
        QCOMPARE(file->notes(1).value()[0].text, std::string("now"));
    }
};

QTEST_GUILESS_MAIN(TestNotes)
#include "tst_notes.moc"
