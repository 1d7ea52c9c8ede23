// Working with runs: notes, palette, SQL console, search, bookmarks, layouts, session, windows, files that change,
// keys.
#include <map>

#include <QDialog>
#include <QDockWidget>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QListView>
#include <QMenu>
#include <QPushButton>
#include <QTableView>

#include "app/ui/notes/bookmarks_controller.h"
#include "app/ui/notes/notes_controller.h"
#include "app/ui/search/search_controller.h"
#include "app/ui/shell/appearance.h"
#include "app/ui/shell/key_page.h"
#include "app/ui/shell/layout_controller.h"
#include "app/ui/shell/palette_controller.h"
#include "app/ui/shell/session_controller.h"
#include "app/ui/shell/window_set.h"
#include "app/ui/sql/built_in_queries.h"
#include "app/ui/sql/sql_controller.h"
#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "tests/ui/window_fixture.h"
#include "traces/store/add_runs.h"
#include "widgets/console/sql_console.h"
#include "widgets/notes/notes_overlay.h"
#include "widgets/notes/notes_panel.h"
#include "widgets/palette/command_palette.h"
#include "widgets/preferences/preferences.h"
#include "widgets/search/search_overlay.h"
#include "widgets/search/search_panel.h"
#include "widgets/timeline/timeline_view.h"

using namespace stagewright;

class TestWorking : public WindowTest {
    Q_OBJECT

    QString open(std::initializer_list<const char*> schedules, const char* name = "work.stagewright")
    {
        const QString path = m_fixture->file(name, schedules);
        m_window->workspace().feature<FileOpening>()->openFiles({path});
        if (!WindowFixture::settle(*m_window) || m_window->workspace().shown().mode() != Shown::Mode::Run) return {};
        m_window->activateWindow();
        m_window->workspace().views().timeline->setFocus();
        return path;
    }
    QAction* action(ActionId id) { return m_window->workspace().actions()[id]; }
    const Timeline& timeline() { return *m_window->workspace().views().timeline->panels().front()->timeline; }
    SpanId span(const char* name) { return WindowFixture::spanOf(timeline(), name); }
    static std::vector<Note> stored(const QString& path, qint64 run = 1)
    {
        auto file = RunFile::open(path.toStdString(), OpenMode::Read);
        return file ? (*file)->notes(run).value_or(std::vector<Note>{}) : std::vector<Note>{};
    }
    void ask(const char* sql)
    {
        m_window->workspace().feature<SqlController>()->ask(QString::fromUtf8(sql));
        QTRY_VERIFY_WITH_TIMEOUT(m_window->workspace().settled() &&
                                     !m_window->workspace().feature<SqlController>()->console()->running(),
                                 30000);
    }

private slots:
    void notesAreMarkedKeptChangedAndUndone()
    {
        const QString path = open({"1f1b", "zb-h1"});
        QVERIFY(!path.isEmpty());
        NotesController& notes = *m_window->workspace().feature<NotesController>();
        action("addNote")->trigger(); // nothing is selected
        QVERIFY(!notes.passing());
        m_window->workspace().viewState()->select({0, span("2F3")});
        action("addNote")->trigger();
        QVERIFY(notes.passing().has_value());
        QCOMPARE(m_window->workspace().feature<NotesController>()->flags()->flags().size(), std::size_t(1));
        QVERIFY(stored(path).empty()); // a temporary note is not stored
        action("keepNote")->trigger();
        QVERIFY(!notes.passing());
        QTRY_VERIFY_WITH_TIMEOUT(stored(path).size() == 1, 20000);
        QCOMPARE(stored(path)[0].op, std::string("2F3"));
        QVERIFY(notes.dock()->isVisible());
        // Its text, in the list.
        notes.changeText(m_window->workspace().shown().ref(), 1, QStringLiteral("waits for rank 1"));
        QTRY_COMPARE_WITH_TIMEOUT(stored(path)[0].text, std::string("waits for rank 1"), 20000);
        QCOMPARE(m_window->workspace().feature<NotesController>()->flags()->flags()[0].text,
                 QStringLiteral("waits for rank 1"));
        // A range.
        m_window->workspace().viewState()->setAreas({{{0, 5 * rankShare}, 1, 2}});
        action("keepNote")->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(stored(path).size() == 2, 20000);
        QCOMPARE(stored(path)[1].rank, 1);
        QCOMPARE(stored(path)[1].end, 5 * rankShare);
        // Undo to the start, redo to the end.
        while (notes.undoStack()->canUndo()) action("undo")->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(stored(path).empty(), 20000);
        QVERIFY(m_window->workspace().feature<NotesController>()->flags()->flags().empty());
        while (notes.undoStack()->canRedo()) action("redo")->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(stored(path).size() == 2, 20000);
        // The flag is drawn, and a click on it selects the note, which Delete removes.
        QVERIFY(WindowFixture::settle(*m_window));
        const auto rect = m_window->workspace().views().timeline->rectOf({0, span("2F3")});
        const QPoint flag(static_cast<int>(rect->left()) + 8, static_cast<int>(rect->top()) - 12);
        QVERIFY(m_window->workspace().feature<NotesController>()->flags()->flagAt(flag) != nullptr);
        QCOMPARE(m_window->workspace().feature<NotesController>()->flags()->flagAt(flag)->number, 0);
        const QImage picture = m_window->workspace().views().timeline->grab().toImage();
        const double ratio = picture.devicePixelRatio();
        QCOMPARE(picture.pixelColor(static_cast<int>((rect->left() + 8) * ratio),
                                    static_cast<int>((rect->top() - 20) * ratio)),
                 m_window->workspace().theme().accent);
        QTest::mouseClick(m_window->workspace().views().timeline, Qt::LeftButton, {}, flag);
        QCOMPARE(notes.panel()->currentRow(), 0);
        action("removeNote")->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(stored(path).size() == 1, 20000);
        QVERIFY(m_window->workspace().banner()->text().isEmpty());
    }

    void notesAreCarriedToARerun()
    {
        const QString path = m_fixture->file("again.stagewright", {"1f1b", "1f1b"});
        {
            auto file = RunFile::open(path.toStdString(), OpenMode::Write).value();
            Note note = noteOnSpan(*file->read(1)->timeline, 3);
            note.text = "here";
            QVERIFY(file->setNotes(1, {note}).has_value());
        }
        m_window->workspace().feature<FileOpening>()->openFiles({path});
        QVERIFY(WindowFixture::settle(*m_window));
        m_window->workspace().shown().showRun({path, 2});
        QTRY_VERIFY_WITH_TIMEOUT(m_window->workspace().shown().ref().id == 2 && WindowFixture::settle(*m_window),
                                 20000);
        QTRY_VERIFY_WITH_TIMEOUT(m_window->workspace().feature<NotesController>()->notes({path, 2}).size() == 1, 20000);
        QVERIFY(m_window->workspace().feature<NotesController>()->flags()->flags()[0].carried);
        // Changed, it becomes this run's own.
        emit m_window->workspace().feature<NotesController>()->panel()->model()->edited(0, QStringLiteral("here too"));
        QTRY_VERIFY_WITH_TIMEOUT(stored(path, 2).size() == 1, 20000);
        QCOMPARE(stored(path, 1)[0].text, std::string("here"));
    }

    void notesOfRunsInMemoryAreSavedWithThem()
    {
        m_window->workspace().feature<LibraryOpening>()->newFromLibrary(QStringLiteral("zb-h1"), Shape{4, 8, 0});
        QVERIFY(WindowFixture::settle(*m_window));
        if (m_window->workspace().shown().mode() == Shown::Mode::Edit)
            m_window->workspace().feature<OrderEditing>()->leaveEdit();
        QVERIFY(WindowFixture::settle(*m_window));
        m_window->workspace().viewState()->select({0, span("1F1")});
        m_window->workspace().feature<NotesController>()->keep();
        QCOMPARE(m_window->workspace().feature<NotesController>()->notes(m_window->workspace().shown().ref()).size(),
                 std::size_t(1));
        const QString copy = m_fixture->dir.filePath(QStringLiteral("copy.stagewright"));
        bool done = false;
        m_window->workspace().library()->saveCopy(m_window->workspace().shown().ref().file, copy,
                                                  [&](Result<void> result) { done = result.has_value(); });
        QTRY_VERIFY_WITH_TIMEOUT(done, 20000);
        QCOMPARE(stored(copy).size(), std::size_t(1));
        QCOMPARE(stored(copy)[0].op, std::string("1F1"));
    }

    // What users type, and what they mean: among the first three, and what is open and possible first.
    void paletteFindsWhatUsersType()
    {
        const std::pair<const char*, const char*> phrases[] = {
            // sixteen that were typed while the window was tried
            {"memory limit", "memoryBudget"},
            {"dark mode", "themeDark"},
            {"export svg", "exportPicture"},
            {"slow rank", "tables"},
            {"compare two runs", "compare"},
            {"zoom to fit", "fit"},
            {"shortcuts", "keys"},
            {"full screen", "fullScreen"},
            {"rename run", "renameRun"},
            {"why idle", "nextGap"},
            {"font size", "preferences"},
            {"optimize", "explorer"},
            {"print", "exportReport"},
            {"replicas", "record"},
            {"high contrast", "themeHighContrast"},
            {"save", "saveCopy"},
            // sixty more
            {"settings", "preferences"},
            {"options", "preferences"},
            {"text scale", "preferences"},
            {"hotkeys", "keys"},
            {"keyboard shortcuts", "keys"},
            {"light mode", "themeLight"},
            {"color blind", "hatchKinds"},
            {"png", "exportPicture"},
            {"pdf", "exportPicture"},
            {"tikz", "exportPicture"},
            {"screenshot", "exportPicture"},
            {"figure for paper", "exportPicture"},
            {"html report", "exportReport"},
            {"perfetto json", "exportRun"},
            {"export chrome", "exportRun"},
            {"open file", "open"},
            {"load", "open"},
            {"import pytorch", "importTraces"},
            {"nsight", "importTraces"},
            {"kineto", "importTraces"},
            {"diff", "compare"},
            {"side by side", "compare"},
            {"why faster", "compare"},
            {"reference run", "setBaseline"},
            {"baseline", "setBaseline"},
            {"bottleneck", "criticalPath"},
            {"longest chain", "criticalPath"},
            {"straggler", "tables"},
            {"statistics", "tables"},
            {"bubble cause", "nextGap"},
            {"explain gap", "nextGap"},
            {"oom", "memoryBudget"},
            {"out of memory", "memoryBudget"},
            {"cap", "memoryBudget"},
            {"activation chart", "memory"},
            {"hide memory", "memory"},
            {"network", "commTracks"},
            {"messages", "commTracks"},
            {"nccl", "commTracks"},
            {"deadlock", "loweredView"},
            {"sends", "loweredView"},
            {"all ranks", "fitRows"},
            {"row height", "rowsTaller"},
            {"thinner rows", "rowsLower"},
            {"unpin", "resetRows"},
            {"zoom in", "fitSelection"},
            {"go back", "back"},
            {"search op", "find"},
            {"annotate", "addNote"},
            {"bookmark", "bookmarkSet1"},
            {"comment", "addNote"},
            {"drag ops", "editMode"},
            {"reorder", "editMode"},
            {"split backward", "splitBackward"},
            {"pareto", "explorer"},
            {"best schedule", "explorer"},
            {"new training", "record"},
            {"measure", "record"},
            {"tutorial", "lessons"},
            {"sample", "firstLook"},
            {"definition", "glossary"},
            {"query", "sqlConsole"},
            {"animate", "play"},
            {"milliseconds", "unitMillis"},
            {"model error", "residuals"},
            {"slower network", "whatIf"},
            {"how do i export a picture", "exportPicture"},
        };
        QVERIFY(std::size(phrases) >= 76);
        QVERIFY(!open({"1f1b", "zb-h1"}).isEmpty());
        CommandPalette* palette = m_window->workspace().feature<PaletteController>()->open();
        QVERIFY(palette != nullptr);
        QStringList missed;
        for (const auto& [phrase, means] : phrases) {
            palette->field()->setText(QString::fromUtf8(phrase));
            QStringList first;
            for (int row = 0; row < std::min(3, palette->model()->rowCount()); ++row)
                first << palette->model()->entry(row)->id;
            if (!first.contains(QStringLiteral("action:") + QLatin1String(means)))
                missed << QStringLiteral("%1: %2").arg(QLatin1String(phrase), first.join(QStringLiteral(", ")));
        }
        palette->close();
        QVERIFY2(missed.isEmpty(), qPrintable(missed.join(QLatin1Char('\n'))));
    }
    // Words are ANDed, and letters in order count only where no words are found.
    void paletteTakesEveryWord()
    {
        PaletteModel model;
        model.setEntries({{"a", "Action", "Light", "Theme", {}, {}, {}, "day mode"},
                          {"b", "File", "slow.stagewright", {}, {}, {}, {}},
                          {"c", "Action", "Export picture", "As PNG, SVG or PDF", {}, {}, {}},
                          {"d", "Action", "Export report", "One HTML page", {}, {}, {}}},
                         {});
        const auto found = [&](const char* pattern) {
            model.setPattern(QString::fromUtf8(pattern));
            QStringList ids;
            for (int row = 0; row < model.rowCount(); ++row) ids << model.entry(row)->id;
            return ids;
        };
        QCOMPARE(found("light"), QStringList{"a"}); // not the file's letters
        QCOMPARE(found("day"), QStringList{"a"});
        QCOMPARE(found("export svg"), QStringList{"c"});
        QCOMPARE(found("export html page"), QStringList{"d"});
        QCOMPARE(found("svg html"), QStringList{});
        QCOMPARE(found("expic"), QStringList{"c"});
        QCOMPARE(found("stwrt"), QStringList{"b"}); // no words: letters in order
    }

    void paletteReachesEverything()
    {
        open({"1f1b", "zb-h1"});
        action("palette")->trigger();
        auto* palette = m_window->findChild<CommandPalette*>();
        QVERIFY(palette != nullptr);
        // Every action in any state, except the palette itself and the menu of recent files.
        palette->field()->clear();
        QCOMPARE(palette->model()->rowCount() >= static_cast<int>(m_window->workspace().actions().all().size()) - 2,
                 true);
        QTest::keyClicks(palette->field(), QStringLiteral("zb-h1"));
        bool run = false, schedule = false;
        for (int row = 0; row < palette->model()->rowCount(); ++row) {
            run = run || palette->model()->entry(row)->id.startsWith(QLatin1String("run:"));
            schedule = schedule || palette->model()->entry(row)->id.startsWith(QLatin1String("schedule:"));
        }
        QVERIFY(run && schedule);
        palette->field()->setText(QStringLiteral("2F3"));
        QVERIFY(palette->model()->entry(0)->id.startsWith(QLatin1String("op:")));
        QTest::keyClick(palette->field(), Qt::Key_Return);
        QCOMPARE(m_window->workspace().viewState()->selected().span, span("2F3"));
        // Recently used entries come first; unavailable ones say why.
        QTRY_VERIFY(m_window->findChild<CommandPalette*>() == nullptr);
        palette = m_window->workspace().feature<PaletteController>()->open();
        palette->field()->setText(QStringLiteral("swap a and b"));
        QVERIFY(!palette->model()->entry(0)->disabled.isEmpty());
        palette->field()->setText(QStringLiteral("criticalpath"));
        const bool before = m_window->workspace().viewState()->shows().criticalPath;
        QTest::keyClick(palette->field(), Qt::Key_Return);
        QCOMPARE(m_window->workspace().viewState()->shows().criticalPath, !before);
        QTRY_VERIFY(m_window->findChild<CommandPalette*>() == nullptr);
        palette = m_window->workspace().feature<PaletteController>()->open();
        QCOMPARE(palette->model()->entry(0)->id, QStringLiteral("action:criticalPath"));
        palette->close();
    }

    void sqlLeadsToTheTimeline()
    {
        const QString path = open({"1f1b", "zb-h1"});
        action("sqlConsole")->trigger();
        SqlConsole& console = *m_window->workspace().feature<SqlController>()->console();
        QVERIFY(m_window->workspace().feature<SqlController>()->dock()->isVisible());
        for (const SavedQuery& query : builtInQueries()) { // the built-in ones
            ask(query.sql.c_str());
            QVERIFY2(console.model()->columnCount() > 0, query.sql.c_str());
            QVERIFY2(!console.status().contains(QStringLiteral("error")), qPrintable(console.status()));
        }
        ask("SELECT name, span, start_ns, rank FROM spans WHERE run=:run AND name IN ('2F3','1F1') ORDER BY name");
        QCOMPARE(console.model()->rowCount(), 2);
        m_window->workspace().feature<SqlController>()->chooseRow(1);
        QCOMPARE(m_window->workspace().viewState()->selected().span, span("2F3"));
        m_window->workspace().feature<SqlController>()->showAllRows();
        QCOMPARE(m_window->workspace().feature<SearchController>()->overlay().shown()->hits->size(), std::size_t(2));
        // By rank and name only, and by rank and start.
        ask("SELECT rank, name FROM spans WHERE run=1 AND name='3B0'");
        m_window->workspace().feature<SqlController>()->chooseRow(0);
        QCOMPARE(m_window->workspace().viewState()->selected().span, span("3B0"));
        ask("SELECT rank, start_ns FROM spans WHERE run=1 AND name='0B7'");
        m_window->workspace().feature<SqlController>()->chooseRow(0);
        QCOMPARE(m_window->workspace().viewState()->selected().span, span("0B7"));
        // A row of the other run shows it first.
        ask("SELECT run, step, span, name FROM spans WHERE run=2 AND name='1I2'");
        m_window->workspace().feature<SqlController>()->chooseRow(0);
        QTRY_COMPARE_WITH_TIMEOUT(m_window->workspace().shown().ref().id, 2, 20000);
        QTRY_VERIFY_WITH_TIMEOUT(m_window->workspace().viewState()->selected().valid() &&
                                     m_window->workspace().viewState()->selected().span == span("1I2"),
                                 20000);
        // Faults name what is known.
        ask("SELECT * FROM spam");
        QVERIFY(console.status().contains(QStringLiteral("spam")));
        QCOMPARE(console.model()->rowCount(), 0); // the rows of the query before are not below another one's fault
        ask("DELETE FROM run");
        QVERIFY(console.status().contains(QStringLiteral("reading")));
        // Cancel.
        m_window->workspace().feature<SqlController>()->ask(
            QStringLiteral("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT count(*) FROM n"));
        QTRY_VERIFY(console.running());
        m_window->workspace().feature<SqlController>()->cancel();
        QTRY_VERIFY_WITH_TIMEOUT(!console.running(), 30000);
        QCOMPARE(console.status(), QStringLiteral("Cancelled."));
        // Saved in the file and in the settings.
        m_window->workspace().feature<SqlController>()->saveQuery({"mine", "SELECT 1 AS one", "just one"}, true);
        m_window->workspace().feature<SqlController>()->saveQuery({"everywhere", "SELECT 2 AS two", ""}, false);
        QTRY_COMPARE_WITH_TIMEOUT(RunFile::open(path.toStdString(), OpenMode::Read).value()->savedQueries()->size(),
                                  std::size_t(1), 20000);
        QCOMPARE(m_window->workspace().feature<SqlController>()->ownQueries().size(), std::size_t(1));
        m_window->workspace().feature<SqlController>()->removeQuery(QStringLiteral("everywhere"), false);
        QVERIFY(m_window->workspace().feature<SqlController>()->ownQueries().empty());
    }

    // Numbers of spans are the run's: chosen from a query, a note or a bookmark while a tool draws its own picture they
    // bring the run's back.
    void placesOfTheRunLeaveAToolsPicture()
    {
        const QString path = open({"zb-h1"});
        const Timeline& timeline = *m_window->workspace().shown().view()->run->timeline;
        QVERIFY(m_window->workspace().shown().selectOp(WindowFixture::spanOf(timeline, "2W5")));
        const auto selected = [&] {
            const SpanRef ref = m_window->workspace().viewState()->selected();
            return ref.valid() && m_window->workspace().shown().tool() == Shown::Tool::None
                       ? QString::fromStdString(timeline.nameOf(timeline.spans()[ref.span]))
                       : QString();
        };
        QCOMPARE(selected(), QStringLiteral("2W5"));
        const auto away = [&] {
            action("loweredView")->trigger();
            QVERIFY(WindowFixture::settle(*m_window));
            QCOMPARE(m_window->workspace().shown().tool(), Shown::Tool::Lowered);
            QVERIFY(m_window->workspace().views().timeline->panels().front()->timeline.get() != &timeline);
        };
        m_window->workspace().feature<BookmarksController>()->set(1);
        QTRY_VERIFY_WITH_TIMEOUT(RunFile::open(path.toStdString(), OpenMode::Read).value()->bookmarks()->size() == 1,
                                 20000);
        action("sqlConsole")->trigger();
        ask("SELECT name, span FROM spans WHERE run = :run AND name = '2W5'");
        away();
        m_window->workspace().feature<SqlController>()->chooseRow(0);
        QTRY_COMPARE(selected(), QStringLiteral("2W5"));
        away();
        m_window->workspace().feature<BookmarksController>()->jump(1);
        QTRY_COMPARE(selected(), QStringLiteral("2W5"));
        away();
        m_window->workspace().feature<SqlController>()->showAllRows();
        QCOMPARE(m_window->workspace().shown().tool(), Shown::Tool::None);
        QVERIFY(m_window->workspace().feature<SearchController>()->overlay().shown() &&
                m_window->workspace().feature<SearchController>()->overlay().shown()->hits);
        away(); // marks of the run are not those of another picture's ops
        QVERIFY(m_window->workspace().feature<SearchController>()->overlay().shown() == nullptr);
        m_window->workspace().shown().setTool(Shown::Tool::None);
    }

    void sqlAsksRunsInMemory()
    {
        m_window->workspace().feature<LibraryOpening>()->newFromLibrary(QStringLiteral("1f1b"), Shape{2, 4, 0});
        QVERIFY(WindowFixture::settle(*m_window));
        if (m_window->workspace().shown().mode() == Shown::Mode::Edit)
            m_window->workspace().feature<OrderEditing>()->leaveEdit();
        QVERIFY(WindowFixture::settle(*m_window));
        ask("SELECT span, name FROM spans WHERE run = :run AND name = '1F3'");
        QCOMPARE(m_window->workspace().feature<SqlController>()->console()->model()->rowCount(), 1);
        m_window->workspace().feature<SqlController>()->chooseRow(0);
        QCOMPARE(m_window->workspace().viewState()->selected().span, span("1F3"));
    }

    void shownStandsForRunAndStep()
    {
        QCOMPARE(withShown("SELECT :run, ':run' -- :run\n, :step, :runs, :step_2", 3, 1),
                 std::string("SELECT 3, ':run' -- :run\n, 1, :runs, :step_2"));
        QCOMPARE(withShown("SELECT ':run", 3, 1), std::string("SELECT ':run"));
    }

    void searchListsWalksAndMarks()
    {
        open({"zb-h1"});
        SearchController& search = *m_window->workspace().feature<SearchController>();
        m_window->workspace().feature<OpFinding>()->find(QStringLiteral("rank:2 W"));
        QCOMPARE(search.hits().size(), std::size_t(8));
        QCOMPARE(m_window->workspace().feature<SearchController>()->overlay().shown()->hits->size(), std::size_t(8));
        const SpanId first = m_window->workspace().viewState()->selected().span;
        m_window->workspace().feature<OpFinding>()->find(QStringLiteral("rank:2 W"));
        QVERIFY(m_window->workspace().viewState()->selected().span != first);
        m_window->workspace().feature<OpFinding>()->find(QStringLiteral("rank:2 W"), true);
        QCOMPARE(m_window->workspace().viewState()->selected().span, first);
        action("searchList")->trigger();
        QVERIFY(search.dock()->isVisible());
        search.panel()->table()->setCurrentIndex(search.panel()->model()->index(5, 0));
        QCOMPARE(m_window->workspace().viewState()->selected().span, search.hits()[5].span);
        // The text of a note finds its op.
        Note note = noteOnSpan(timeline(), span("3F1"));
        note.text = "slow here";
        m_window->workspace().feature<NotesController>()->addNote(m_window->workspace().shown().ref(), note);
        m_window->workspace().feature<OpFinding>()->find(QStringLiteral("slow"));
        QCOMPARE(search.hits().size(), std::size_t(1));
        QCOMPARE(m_window->workspace().viewState()->selected().span, span("3F1"));
        m_window->workspace().feature<OpFinding>()->find(QStringLiteral("nothing like it"));
        QVERIFY(search.hits().empty());
        QVERIFY(m_window->workspace().feature<SearchController>()->overlay().shown() == nullptr);
        m_window->workspace().feature<OpFinding>()->find(QString());
        QVERIFY(search.hits().empty());
    }

    void bookmarksComeBack()
    {
        const QString path = open({"1f1b", "zb-h1"});
        m_window->workspace().viewState()->select({0, span("2F3")});
        m_window->workspace().viewState()->setVisible({2 * rankShare, 6 * rankShare});
        const TimeRange view = m_window->workspace().viewState()->visible();
        action("bookmarkSet3")->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(RunFile::open(path.toStdString(), OpenMode::Read).value()->bookmarks()->size() == 1,
                                 20000);
        QVERIFY(!action("bookmarkJump1")->isEnabled());
        m_window->workspace().shown().showRun({path, 2});
        QTRY_COMPARE_WITH_TIMEOUT(m_window->workspace().shown().ref().id, 2, 20000);
        QTRY_VERIFY_WITH_TIMEOUT(action("bookmarkJump3")->isEnabled(), 20000); // bookmarks are read in the background
        action("bookmarkJump3")->trigger();
        QTRY_COMPARE_WITH_TIMEOUT(m_window->workspace().shown().ref().id, 1, 20000);
        QTRY_COMPARE(m_window->workspace().viewState()->visible(), view);
        QCOMPARE(m_window->workspace().viewState()->selected().span, span("2F3"));
    }

    void layoutsAreKeptByName()
    {
        open({"1f1b"});
        LayoutController& layouts = *m_window->workspace().feature<LayoutController>();
        layouts.save(QStringLiteral("all of it/1"));
        action("runsList")->trigger();
        action("memory")->trigger();
        m_window->workspace().feature<NotesController>()->dock()->show();
        layouts.save(QStringLiteral("narrow"));
        QCOMPARE(layouts.names(), (QStringList{"all of it/1", "narrow"}));
        QVERIFY(layouts.apply(QStringLiteral("all of it/1")));
        QVERIFY(action("runsList")->isChecked());
        QVERIFY(action("memory")->isChecked());
        QVERIFY(m_window->workspace().feature<NotesController>()->dock()->isHidden());
        QVERIFY(layouts.apply(QStringLiteral("narrow")));
        QVERIFY(!action("runsList")->isChecked());
        QVERIFY(!m_window->workspace().feature<NotesController>()->dock()->isHidden());
        QVERIFY(!layouts.apply(QStringLiteral("unknown")));
        layouts.reset();
        QVERIFY(action("runsList")->isChecked());
        layouts.remove(QStringLiteral("narrow"));
        QCOMPARE(layouts.names(), QStringList{"all of it/1"});
    }

    void sessionsAreRestored()
    {
        const QString first = open({"1f1b", "zb-h1"});
        const QString second = m_fixture->file("second.stagewright", {"gpipe"});
        m_window->workspace().feature<FileOpening>()->openFiles({second});
        QVERIFY(WindowFixture::settle(*m_window));
        m_window->workspace().shown().showRun({first, 2});
        QTRY_COMPARE_WITH_TIMEOUT(m_window->workspace().shown().ref().id, 2, 20000);
        QVERIFY(WindowFixture::settle(*m_window));
        m_window->workspace().viewState()->select({0, span("1I2")});
        m_window->workspace().viewState()->setVisible({rankShare, 5 * rankShare});
        const TimeRange view = m_window->workspace().viewState()->visible();
        WindowSet& set = WindowSet::instance();
        set.keepSession();
        set.save(); // as during work; the process ends abruptly
        const QVariant saved = QSettings().value(QStringLiteral("session/windows"));
        QCOMPARE(saved.toList().size(), 1);
        set.keepSession(false);
        const auto before = [&](bool failed) { // as the last process left it
            QSettings settings;
            settings.setValue(QStringLiteral("session/windows"), saved);
            settings.setValue(QStringLiteral("session/running"), true);
            settings.setValue(QStringLiteral("session/restoring"), failed);
        };

        MainWindow again;
        QVERIFY(WindowFixture::show(again));
        QVERIFY(set.restore(again));
        QTRY_COMPARE_WITH_TIMEOUT(again.workspace().shown().ref().id, 2, 20000);
        QVERIFY(WindowFixture::settle(again));
        QCOMPARE(again.workspace().shown().ref().file, first);
        QCOMPARE(again.workspace().runs()->files().size(), 2);
        QCOMPARE(again.workspace().viewState()->visible(), view);
        QCOMPARE(again.workspace().viewState()->selected().span, span("1I2"));
        QVERIFY(again.workspace().banner()->text().contains(QStringLiteral("did not exit properly")));

        // Switched off; and a restore that crashed the program is not retried automatically.
        Preferences preferences = PreferenceStore::instance().value();
        preferences.restoreSession = false;
        PreferenceStore::instance().set(preferences);
        MainWindow third;
        QVERIFY(!set.restore(third));
        preferences.restoreSession = true;
        PreferenceStore::instance().set(preferences);
        before(true);
        QVERIFY(WindowFixture::show(third));
        QVERIFY(!set.restore(third));
        QVERIFY(third.workspace().banner()->text().contains(QStringLiteral("could not be reopened")));
        // the new window, with nothing in it, was saved meanwhile
        QSettings().setValue(QStringLiteral("session/windows"), QVariantList());
        third.workspace().banner()->answerButton()->click();
        QTRY_COMPARE_WITH_TIMEOUT(third.workspace().shown().ref().id, 2, 20000);
        QVERIFY(WindowFixture::settle(third));
        // A file that is gone is named.
        QVERIFY(QFile::remove(second));
        MainWindow fourth;
        QVERIFY(WindowFixture::show(fourth));
        before(false);
        QVERIFY(set.restore(fourth));
        QVERIFY(WindowFixture::settle(fourth));
        QVERIFY(fourth.workspace().banner()->text().contains(QStringLiteral("second.stagewright")));
        QTRY_COMPARE_WITH_TIMEOUT(fourth.workspace().shown().ref().id, 2, 20000);
        QCOMPARE(WindowSet::instance().windows().size(), std::size_t(4));
        QSettings().remove(QStringLiteral("session"));
    }

    void comparisonsAreRestored()
    {
        const QString path = open({"1f1b", "zb-h1"});
        m_window->workspace().feature<RunComparing>()->show({{path, 1}, {path, 2}});
        QTRY_VERIFY_WITH_TIMEOUT(m_window->workspace().shown().mode() == Shown::Mode::Compare, 20000);
        const QVariantMap state = m_window->workspace().feature<SessionController>()->state();
        MainWindow again;
        QVERIFY(WindowFixture::show(again));
        again.workspace().feature<SessionController>()->restore(state);
        QTRY_VERIFY_WITH_TIMEOUT(again.workspace().shown().mode() == Shown::Mode::Compare, 20000);
        QCOMPARE(again.workspace().shown().ref().id, 1);
        QVERIFY(WindowFixture::settle(again));
    }

    void runsMoveBetweenWindows()
    {
        const QString path = open({"1f1b", "zb-h1"});
        m_window->workspace().viewState()->select({0, span("2F3")});
        MainWindow* other = WindowSet::instance().moveRun(*m_window, nullptr);
        QVERIFY(other != nullptr);
        QTRY_COMPARE_WITH_TIMEOUT(other->workspace().shown().ref(), (RunRef{path, 1}), 20000);
        QTRY_COMPARE_WITH_TIMEOUT(m_window->workspace().shown().ref(), (RunRef{path, 2}), 20000);
        QCOMPARE(other->workspace().viewState()->selected().span,
                 WindowFixture::spanOf(*other->workspace().views().timeline->panels().front()->timeline, "2F3"));
        // Each has its own view; the theme is shared.
        other->workspace().viewState()->setVisible({0, rankShare});
        QVERIFY(!(m_window->workspace().viewState()->visible() == other->workspace().viewState()->visible()));
        Appearance::choose(ThemeChoice::HighContrast);
        QVERIFY(other->workspace().theme().highContrast);
        Appearance::choose(ThemeChoice::Light);
        QVERIFY(!m_window->workspace().theme().dark);
        // A note set in one window is not an outside change to the other.
        other->workspace().viewState()->select(
            {0, WindowFixture::spanOf(*other->workspace().views().timeline->panels().front()->timeline, "0F0")});
        other->workspace().feature<NotesController>()->keep();
        QTRY_VERIFY_WITH_TIMEOUT(other->workspace().feature<NotesController>()->settled() && stored(path).size() == 1,
                                 20000);
        QVERIFY(WindowFixture::finish(*m_window)); // the watcher has seen the file, if it changed
        QTRY_VERIFY(!m_window->workspace().feature<SessionController>()->looking());
        QVERIFY2(m_window->workspace().banner()->text().isEmpty(), qPrintable(m_window->workspace().banner()->text()));
        QVERIFY(WindowFixture::settle(*other));
        QVERIFY(WindowFixture::settle(*m_window));
        other->close();
        QTRY_COMPARE(WindowSet::instance().windows().size(), std::size_t(1));
    }

    void filesThatChangeAreTold()
    {
        const QString path = open({"1f1b"});
        {
            auto file = RunFile::open(path.toStdString(), OpenMode::Write);
            QVERIFY(file && (*file)->add(WindowFixture::simulated("gpipe")));
        }
        QTRY_VERIFY_WITH_TIMEOUT(
            m_window->workspace().banner()->text().contains(QStringLiteral("changed by another program")), 20000);
        QCOMPARE(m_window->workspace().runs()->refs().size(), std::size_t(1));
        m_window->workspace().banner()->answerButton()->click();
        QTRY_COMPARE_WITH_TIMEOUT(m_window->workspace().runs()->refs().size(), std::size_t(2), 20000);
        QVERIFY(WindowFixture::settle(*m_window));
        QCOMPARE(m_window->workspace().shown().ref(), (RunRef{path, 1}));
        QVERIFY(m_window->workspace().banner()->text().isEmpty());
        QVERIFY(QFile::remove(path));
        QTRY_VERIFY_WITH_TIMEOUT(m_window->workspace().banner()->text().contains(QStringLiteral("removed")), 20000);
        QVERIFY(m_window->workspace().shown().mode() == Shown::Mode::Run); // what was read is still there
    }

    // What `stagewright listen` writes again while spans come is followed without a question: the newest step is shown,
    // unless one is looked at.
    void whatIsReceivedIsFollowed()
    {
        const QString path = m_fixture->dir.filePath(QStringLiteral("received.stagewright"));
        const auto write = [&](int steps) { // as the listener does: a new file takes the old one's place
            const Run one = WindowFixture::simulated("1f1b", 2, 4);
            TimelineBuilder builder(Provenance::Imported, "wall", 2);
            for (int rank = 0; rank < 2; ++rank) builder.addTrack(rank, Lane::Compute);
            for (const Track& track : one.timeline->tracks())
                for (int step = 0; track.lane == Lane::Compute && step < steps; ++step)
                    for (Span span : one.timeline->spansOf(track)) {
                        span.step = step;
                        span.start += step * 100 * rankShare;
                        span.end += step * 100 * rankShare;
                        builder.addSpan(track.rank, span);
                    }
            builder.setSchedule(one.schedule);
            Run run = one;
            run.timeline = builder.build().value();
            run.info.steps = run.timeline->steps();
            const Run* const runs[] = {&run};
            QVERIFY(addRuns((path + QStringLiteral(".new")).toStdString(), runs, {}));
            QCOMPARE(std::rename(qPrintable(path + QStringLiteral(".new")), qPrintable(path)), 0);
        };
        QFile journal(path + QStringLiteral(".received.otlp"));
        QVERIFY(journal.open(QIODevice::WriteOnly));
        write(2);
        m_window->workspace().feature<FileOpening>()->openFiles({path});
        QVERIFY(WindowFixture::settle(*m_window));
        const Shown& shown = m_window->workspace().shown();
        const auto shows = [&](int steps, int step) {
            return shown.view() && shown.view()->run->info.steps == steps && shown.view()->step == step;
        };
        write(3);
        QTRY_VERIFY_WITH_TIMEOUT(shows(3, 2), 20000);
        write(5);
        QTRY_VERIFY_WITH_TIMEOUT(shows(5, 4), 20000);
        QVERIFY2(m_window->workspace().banner()->text().isEmpty(), qPrintable(m_window->workspace().banner()->text()));
        QVERIFY(WindowFixture::settle(*m_window));
        m_window->workspace().viewState()->select({0, span("0F1")});
        write(6);
        QTRY_VERIFY_WITH_TIMEOUT(shows(6, 4), 20000);
        QTRY_VERIFY_WITH_TIMEOUT(m_window->workspace().viewState()->selected().valid(), 20000);
        m_window->workspace().viewState()->select({});
        QVERIFY(WindowFixture::settle(*m_window));
        QVERIFY(journal.remove());
        write(7); // the last time
        QTRY_VERIFY_WITH_TIMEOUT(shows(7, 6), 20000);
        QVERIFY(WindowFixture::settle(*m_window));
        write(8); // by someone else
        QTRY_VERIFY_WITH_TIMEOUT(
            m_window->workspace().banner()->text().contains(QStringLiteral("changed by another program")), 20000);
        QVERIFY(shows(7, 6));
    }

    // A key means the same wherever it is pressed: the timeline's keys and the window's.
    void noKeyIsBoundTwice()
    {
        const std::map<ActionId, ViewAction> same{{"fit", ViewAction::FitAll},
                                                  {"fitSelection", ViewAction::FitSelection},
                                                  {"back", ViewAction::HistoryBack},
                                                  {"forward", ViewAction::HistoryForward}};
        QMap<QKeySequence, QString> window;
        for (const auto& [entry, declared] : m_window->workspace().actions().all())
            for (const QKeySequence& key : declared->shortcuts()) {
                // only in edit mode, the note's only outside it
                if (entry.id == "removeOps" && window.value(key) == QLatin1String("removeNote")) continue;
                QVERIFY2(!window.contains(key), qPrintable(key.toString() + QStringLiteral(": ") + window.value(key) +
                                                           QStringLiteral(" and ") + QString::fromLatin1(entry.id)));
                window[key] = QString::fromLatin1(entry.id);
            }
        for (const KeyMapName map : {KeyMapName::Perfetto, KeyMapName::Nsight, KeyMapName::Tracy})
            for (const KeyBinding& binding : keyMap(map))
                for (const QKeySequence& key : binding.keys) {
                    if (!window.contains(key)) continue;
                    bool means = false;
                    for (const auto& [id, view] : same)
                        means = means || (view == binding.action && action(id)->shortcuts().contains(key));
                    QVERIFY2(means, qPrintable(key.toString() + QStringLiteral(": ") + window.value(key) +
                                               QStringLiteral(" and ") + binding.title));
                }
    }

    void keyPageShowsTheMapInForce()
    {
        open({"1f1b"});
        for (const ActionId id : {"keysTracy", "keysNsight", "keysPerfetto"}) {
            action(id)->trigger();
            showKeys(m_window->workspace());
            auto* page = m_window->findChild<QDialog*>(QStringLiteral("keyMap"));
            QVERIFY(page != nullptr);
            QStringList texts;
            for (const QLabel* label : page->findChildren<QLabel*>()) texts << label->text();
            for (const KeyBinding& binding : keyMap(m_window->workspace().views().timeline->input().keyMap()))
                QVERIFY2(texts.contains(binding.title), qPrintable(binding.title));
            showKeys(m_window->workspace());
            QTRY_VERIFY(m_window->findChild<QDialog*>(QStringLiteral("keyMap")) == nullptr);
        }
    }
};

QTEST_MAIN(TestWorking)
#include "tst_working.moc"
