// Lessons in the window: the shelf, a whole lesson by keyboard with a real recording, verdicts that change with their
// schedule, refused moves, the shown solution, continuing later, a teacher's file with a mistake, the glossary.
#include <set>

#include <QComboBox>
#include <QDockWidget>
#include <QFile>
#include <QFileDialog>
#include <QHelpEvent>
#include <QLabel>
#include <QLineEdit>
#include <QMimeData>
#include <QProgressBar>
#include <QPushButton>
#include <QSlider>
#include <QSpinBox>
#include <QStackedWidget>
#include <QTextDocument>
#include <QToolBar>
#include <QToolTip>

#include "app/ui/edit/edit_controller.h"
#include "app/ui/files/welcome_page.h"
#include "app/ui/lessons/lesson_controller.h"
#include "app/ui/lessons/lesson_session.h"
#include "app/ui/shell/appearance.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "schedules/library/registry.h"
#include "small_lesson.h"
#include "traces/lessons/lesson_file.h"
#include "widgets/deadlock/hang_overlay.h"
#include "widgets/edit/move_hint.h"
#include "widgets/edit/op_tray.h"
#include "widgets/edit/schedule_editor.h"
#include "widgets/edit/schedule_text.h"
#include "widgets/lessons/glossary_panel.h"
#include "widgets/lessons/lesson_shelf.h"
#include "widgets/lessons/lesson_text.h"
#include "widgets/lessons/page_reading.h"
#include "widgets/lessons/score_rail.h"
#include "widgets/memory/memory_view.h"
#include "widgets/panel/side_panel.h"
#include "widgets/runs/runs_panel.h"
#include "widgets/timeline/legend.h"
#include "widgets/timeline/timeline_view.h"
#include "window_fixture.h"

using namespace stagewright;

class TestLessons : public QObject {
    Q_OBJECT
    std::unique_ptr<WindowFixture> m_fixture;
    QString m_file;

    QString write(const QString& name, const QString& text)
    {
        QFile file(m_fixture->dir.filePath(name));
        if (!file.open(QIODevice::WriteOnly)) return {};
        file.write(text.toUtf8());
        return file.fileName();
    }
    static bool ready(MainWindow& window)
    {
        return QTest::qWaitFor([&] { return window.workspace().settled(); }, 60000) && (QTest::qWait(20), true) &&
               QTest::qWaitFor([&] { return window.workspace().settled(); }, 60000);
    }
    static QPushButton* named(QWidget* parent, const QString& text)
    {
        for (QPushButton* button : parent->findChildren<QPushButton*>())
            if (button->text() == text && button->isVisible()) return button;
        return nullptr;
    }

private slots:
    void initTestCase() { QVERIFY2(WindowFixture::recordsWithBuiltProgram(), "the program stagewright is not built"); }

    void init()
    {
        m_fixture = std::make_unique<WindowFixture>();
        qputenv("XDG_DATA_HOME", m_fixture->dir.path().toUtf8());
        m_file = write(QStringLiteral("small.md"), QString::fromUtf8(smallLesson));
    }

    // What the command line, or another window, keeps while a lesson is open is not written over by what the lesson
    // read at its start.
    void answers_of_others_stay()
    {
        const std::string path = lessons::LearnerProgress::defaultPath();
        auto lesson = lessons::readLesson(smallLesson, "small.md");
        QVERIFY(lesson.has_value());
        const auto shared = std::make_shared<const lessons::Lesson>(std::move(*lesson));
        const auto keepElsewhere = [&](const char* of, const char* check) {
            return lessons::LearnerProgress::change(
                       path,
                       [&](lessons::LearnerProgress& now) {
                           now.keep({of, check, shared->hash, lessons::Mark::Done, {}, {}, "elsewhere", {}, 1});
                       })
                .has_value();
        };
        LessonSession session(shared);
        LessonSession second(shared);
        QVERIFY(keepElsewhere("other", "a") && keepElsewhere("small", "low-memory"));
        session.say("time", "12");
        second.say("time", "13"); // the same answer: the last one
        QVERIFY(keepElsewhere("other", "b"));
        session.say("time", "14");
        const auto now = lessons::LearnerProgress::read(path);
        QVERIFY(now.has_value());
        QCOMPARE(now->answers().size(), std::size_t{4});
        QCOMPARE(now->find("small", "time")->said, std::string("14"));
        QCOMPARE(now->find("small", "low-memory")->said, std::string("elsewhere"));
        QCOMPARE(session.markOf("low-memory"), lessons::Mark::Done); // known here, too, from the writing on
        session.startOver();
        QCOMPARE(lessons::LearnerProgress::read(path)->answers().size(), std::size_t{2}); // those of the other lesson
    }

    void every_lesson_is_on_the_shelf_and_answers_to_keys()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window, {1600, 1000}));
        QTest::keyClick(&window, Qt::Key_N, Qt::ControlModifier | Qt::ShiftModifier);
        QVERIFY(ready(window));
        LessonShelf* shelf = window.workspace().feature<LessonController>()->shelf();
        QVERIFY(shelf->isVisible());
        const auto library = lessons::loadLibrary();
        QCOMPARE(shelf->cards().size(), library.lessons.size());
        QVERIFY(!shelf->cards().empty());
        for (const LessonCard* card : shelf->cards()) {
            QVERIFY(!card->accessibleName().isEmpty());
            QVERIFY2(!card->entry().picture.empty(), qPrintable(card->accessibleName()));
        }
        QVERIFY(shelf->statusText().startsWith(QStringLiteral("0 of %1 done").arg(library.lessons.size())));
        LessonCard* first = shelf->cards().front();
        first->setFocus();
        const QString before = shelf->chosen();
        if (shelf->cards().size() > 1) {
            QTest::keyClick(first, Qt::Key_Right);
            QVERIFY(shelf->chosen() != before);
            QTest::keyClick(QApplication::focusWidget(), Qt::Key_End);
            QVERIFY(shelf->cards().back()->hasFocus());
            QTest::keyClick(QApplication::focusWidget(), Qt::Key_Home);
            QVERIFY(shelf->cards().front()->hasFocus());
        }
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_Return);
        QVERIFY(ready(window));
        QVERIFY(window.workspace().feature<LessonController>()->session() != nullptr);
        QCOMPARE(qs(window.workspace().feature<LessonController>()->session()->lesson().id), shelf->chosen());
    }

    void a_whole_lesson_by_keyboard_with_a_real_run()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.workspace().feature<LessonController>()->start(m_file);
        QVERIFY(ready(window));
        LessonPanel* panel = window.workspace().feature<LessonController>()->panel();
        QVERIFY(panel->isVisible());
        QVERIFY(!panel->nextReason().isEmpty()); // no guess yet

        // Guess: typed, Enter, then Next.
        auto* field = panel->findChild<QLineEdit*>();
        QVERIFY(field != nullptr);
        field->setFocus();
        QTest::keyClicks(field, QStringLiteral("17"));
        QTest::keyClick(field, Qt::Key_Return);
        QVERIFY(ready(window));
        QCOMPARE(panel->nextReason(), QString());
        QTest::keyClick(&window, Qt::Key_Right, Qt::ControlModifier | Qt::AltModifier);
        QVERIFY(ready(window));
        QCOMPARE(window.workspace().shown().mode(), Shown::Mode::Edit);
        QVERIFY(panel->plainText().contains(QStringLiteral("GPipe holds 4")));
        QVERIFY(!panel->nextReason().isEmpty());
        QVERIFY(window.workspace().feature<LessonController>()->rail()->isVisible());
        QVERIFY(!panel->plainText().contains(QStringLiteral("You guessed"))); // not before the goal
        bool guessed = false;
        for (const auto& mark : window.workspace().feature<LessonController>()->rail()->marks())
            guessed = guessed || (mark.value == 17 && mark.guess);
        QVERIFY(guessed);

        // Next does nothing while the goal is not met.
        const int page = window.workspace().feature<LessonController>()->session()->pageIndex();
        QTest::keyClick(&window, Qt::Key_Right, Qt::ControlModifier | Qt::AltModifier);
        QVERIFY(ready(window));
        QCOMPARE(window.workspace().feature<LessonController>()->session()->pageIndex(), page);

        // Do: a typed edit.
        auto* words = panel->findChild<QLineEdit*>(QStringLiteral("editInWords"));
        QVERIFY(words != nullptr);
        words->setFocus();
        QTest::keyClicks(words, QStringLiteral("warmup 2,1"));
        QTest::keyClick(words, Qt::Key_Return);
        QVERIFY(ready(window));
        QCOMPARE(panel->nextReason(), QString());
        QCOMPARE(window.workspace().feature<LessonController>()->session()->markOf("low-memory"), lessons::Mark::Done);
        QVERIFY2(panel->plainText().contains(QStringLiteral("You guessed 17 units. It is 15 units.")),
                 qPrintable(panel->plainText()));
        QTest::keyClick(&window, Qt::Key_Right, Qt::ControlModifier | Qt::AltModifier);
        QVERIFY(ready(window));

        // Prove: the button by keyboard, a real training.
        auto* run = named(panel, QStringLiteral("Run it for real"));
        QVERIFY(run != nullptr);
        run->setFocus();
        QTest::keyClick(run, Qt::Key_Space);
        QVERIFY2(!window.workspace().feature<LessonController>()->runs()->running().isEmpty(),
                 qPrintable(window.workspace().banner()->text()));
        QVERIFY(QTest::qWaitFor(
            [&] {
                return window.workspace().feature<LessonController>()->runs()->running().isEmpty() &&
                       window.workspace().settled();
            },
            180000));
        QVERIFY(ready(window));
        QTRY_COMPARE_WITH_TIMEOUT(window.workspace().shown().mode(), Shown::Mode::Compare, 60000);
        QVERIFY(ready(window));
        QCOMPARE(panel->nextReason(), QString());
        QVERIFY(window.workspace().feature<LessonController>()->session()->learner().runs.size() >= 1);
        QCOMPARE(window.workspace().feature<LessonController>()->session()->markOf("real"), lessons::Mark::Proved);
        QTRY_VERIFY_WITH_TIMEOUT(
            !window.workspace().feature<LessonController>()->runs()->proof(QStringLiteral("real")).isEmpty(), 120000);

        // Keep: a figure on disk.
        QTest::keyClick(&window, Qt::Key_Right, Qt::ControlModifier | Qt::AltModifier);
        QVERIFY(ready(window));
        auto* keep = named(panel, QStringLiteral("Save figure…"));
        QVERIFY(keep != nullptr);
        keep->setFocus();
        QTest::keyClick(keep, Qt::Key_Space);
        auto* dialog = window.findChild<QFileDialog*>(QStringLiteral("keepFigure"));
        QVERIFY(dialog != nullptr);
        const QString figure = m_fixture->dir.filePath(QStringLiteral("fig.svg"));
        emit dialog->fileSelected(figure);
        dialog->close();
        QFile drawn(figure);
        QVERIFY(drawn.open(QIODevice::ReadOnly));
        QVERIFY(drawn.readAll().contains("1F1B on two ranks"));

        // The shelf shows it: done, with the bolt, under Your lessons.
        window.workspace().feature<LessonController>()->openShelf();
        QVERIFY(ready(window));
        bool listed = false;
        for (const LessonCard* card : window.workspace().feature<LessonController>()->shelf()->cards())
            if (card->entry().lesson->id == "small") {
                listed = true;
                QCOMPARE(card->entry().mark, lessons::Mark::Proved);
                QCOMPARE(card->entry().row, QStringLiteral("Your lessons"));
                QCOMPARE(card->entry().figure, figure);
            }
        QVERIFY(listed);
    }

    void a_verdict_falls_with_its_schedule()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.workspace().feature<LessonController>()->start(m_file, false, 1);
        QVERIFY(ready(window));
        emit window.workspace().feature<LessonController>()->panel()->tools()->editAsked(QStringLiteral("warmup 2,1"));
        QVERIFY(ready(window));
        QCOMPARE(window.workspace().feature<LessonController>()->panel()->nextReason(), QString());
        window.workspace().feature<OrderEditing>()->editor().undoStack()->undo();
        QVERIFY(ready(window));
        QVERIFY(!window.workspace().feature<LessonController>()->panel()->nextReason().isEmpty());
        // earlier progress is kept
        QCOMPARE(window.workspace().feature<LessonController>()->session()->markOf("low-memory"), lessons::Mark::Done);
    }

    void a_move_that_can_not_run_bounces_back_with_the_reason()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.workspace().feature<LessonController>()->start(m_file, false, 1);
        QVERIFY(ready(window));
        QCOMPARE(window.workspace().shown().mode(), Shown::Mode::Edit);
        const Schedule before = window.workspace().feature<OrderEditing>()->editor().schedule();
        int backward = 0;
        while (before.order[1][static_cast<std::size_t>(backward)].kind == OpKind::Forward) ++backward;
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().move({1, backward}, 0)); // before its forward
        QTRY_VERIFY_WITH_TIMEOUT(window.workspace().feature<OrderEditing>()->editor().schedule() == before, 10000);
        QTRY_VERIFY_WITH_TIMEOUT(!window.workspace().feature<LessonController>()->refusal().isEmpty(), 10000);
        QVERIFY(window.workspace().feature<LessonController>()->session()->canvas().schedule == before);
        // The same with typed edits, and tools that the step does not allow.
        emit window.workspace().feature<LessonController>()->panel()->tools()->editAsked(
            QStringLiteral("rank 1: 1F0 1F1 1F2 1F3 1B0 1B1 1B2 1B3"));
        QVERIFY(window.workspace().feature<LessonController>()->refusal().contains(QStringLiteral("doesn't allow")));
    }

    void show_me_is_shown_and_not_done()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.workspace().feature<LessonController>()->start(m_file, false, 1);
        QVERIFY(ready(window));
        auto* show =
            named(window.workspace().feature<LessonController>()->panel(), QStringLiteral("Show the solution"));
        QVERIFY(show != nullptr);
        show->click();
        QVERIFY(ready(window));
        QCOMPARE(window.workspace().feature<LessonController>()->session()->markOf("low-memory"), lessons::Mark::Shown);
        QVERIFY(window.workspace().feature<LessonController>()->panel()->plainText().contains(
            QStringLiteral("instead of four")));
        // From the start, by hand: done.
        window.workspace().feature<LessonController>()->session()->reset();
        QVERIFY(ready(window));
        emit window.workspace().feature<LessonController>()->panel()->tools()->editAsked(QStringLiteral("warmup 2,1"));
        QVERIFY(ready(window));
        QCOMPARE(window.workspace().feature<LessonController>()->session()->markOf("low-memory"), lessons::Mark::Done);
    }

    void hints_come_in_three_and_the_third_moves()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.workspace().feature<LessonController>()->start(m_file, false, 1);
        QVERIFY(ready(window));
        for (int hint = 0; hint < 3; ++hint) {
            QTest::keyClick(&window, Qt::Key_H, Qt::ControlModifier | Qt::AltModifier);
            QVERIFY(ready(window));
            QCOMPARE(window.workspace().feature<LessonController>()->session()->hintsOf("low-memory"), hint + 1);
        }
        // its edit was the solution
        QCOMPARE(window.workspace().feature<LessonController>()->panel()->nextReason(), QString());
    }

    void it_goes_on_where_it_was_left()
    {
        {
            MainWindow window;
            QVERIFY(WindowFixture::show(window));
            window.workspace().feature<LessonController>()->start(m_file);
            QVERIFY(ready(window));
            window.workspace().feature<LessonController>()->session()->say("time", "15");
            window.workspace().feature<LessonController>()->session()->goTo(1);
            QVERIFY(ready(window));
            // under way
            emit window.workspace().feature<LessonController>()->panel()->tools()->editAsked(
                QStringLiteral("swap 1F3 1B0"));
            QVERIFY(ready(window));
        }
        MainWindow again;
        QVERIFY(WindowFixture::show(again));
        again.workspace().feature<LessonController>()->start(m_file);
        QVERIFY(ready(again));
        QCOMPARE(again.workspace().feature<LessonController>()->session()->pageIndex(), 1);
        QCOMPARE(again.workspace().feature<LessonController>()->session()->learner().said.at("time"),
                 std::string("15"));
        const auto& row = again.workspace().feature<LessonController>()->session()->canvas().schedule.order[1];
        QCOMPARE(toText(row[3]), std::string("1B0"));
        again.workspace().feature<LessonController>()->start(m_file, true);
        if (again.workspace().feature<LessonController>()->session() != nullptr)
            again.workspace().feature<LessonController>()->session()->startOver();
        QVERIFY(ready(again));
        QCOMPARE(again.workspace().feature<LessonController>()->session()->pageIndex(), 0);
        QVERIFY(again.workspace().feature<LessonController>()->session()->learner().said.empty());
    }

    void what_is_missing_is_named()
    {
        Schedule order = makeSchedule("gpipe", Shape(2, 1)).value();
        order.order[1].pop_back(); // 1B0
        const Error backward = LessonSession::whyNot(order);
        QCOMPARE(QString::fromStdString(backward.message),
                 QStringLiteral("place 1B0 on rank 1 first: 0B0 needs its gradient"));
        order.order[0].clear();
        QCOMPARE(QString::fromStdString(LessonSession::whyNot(order).message),
                 QStringLiteral("place 0F0 on rank 0 first: 1F0 needs its activations"));
    }

    // What the lesson does not use is put away, and comes back; a step's own needs are there.
    void one_thing_is_on_screen()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        Workspace& workspace = window.workspace();
        LessonController* lessons = workspace.feature<LessonController>();
        const auto bar = window.findChild<QToolBar*>();
        QVERIFY(bar != nullptr && bar->isVisible());
        QVERIFY(workspace.actions()["runsList"]->isChecked());
        QVERIFY(workspace.actions()["scheduleText"]->isChecked());
        lessons->start(QStringLiteral("why-pipelines"));
        QVERIFY(ready(window));
        OpTray* tray = workspace.feature<EditController>()->deck().tray();
        QVERIFY(!bar->isVisible());
        QVERIFY(!workspace.views().runs->isVisible());
        QVERIFY(!workspace.views().memory->isVisible());
        QVERIFY(!workspace.feature<EditController>()->deck().text()->isVisible());
        QVERIFY2(!tray->isVisible(), "a guess needs no ops");
        QVERIFY(qobject_cast<QLineEdit*>(QApplication::focusWidget()) != nullptr); // to type the guess at once
        QTest::keyClick(&window, Qt::Key_F6);
        QVERIFY(workspace.views().timeline->hasFocus());
        QTest::keyClick(&window, Qt::Key_F6);
        QVERIFY(lessons->panel()->isAncestorOf(QApplication::focusWidget()));
        lessons->session()->goTo(1);
        QVERIFY(ready(window));
        QVERIFY(tray->isVisible());
        QVERIFY2(named(tray, QStringLiteral("Place all")) == nullptr, "that would be the program's work");
        // The axis is the rail's and stays while ops are placed.
        const TimeRange before = workspace.viewState()->visible();
        QCOMPARE(workspace.viewState()->extent().end, 8 * rankShare); // four thirds of par
        emit lessons->panel()->tools()->editAsked(QStringLiteral("place 0F0 0"));
        QVERIFY(ready(window));
        QVERIFY(workspace.viewState()->visible() == before);
        QCOMPARE(lessons->rail()->placeOf(6), workspace.views().timeline->scene().axis.toX(6 * rankShare));
        lessons->start(QStringLiteral("memory-wall"), false, 1);
        QVERIFY(ready(window));
        QVERIFY(workspace.views().memory->isVisible());
        workspace.actions()["leaveLesson"]->trigger();
        QVERIFY(ready(window));
        QVERIFY(lessons->shelf()->isVisible());
        QVERIFY(bar->isVisible());
        QVERIFY(workspace.actions()["runsList"]->isChecked());
        QVERIFY(workspace.actions()["scheduleText"]->isChecked());
        QCOMPARE(workspace.viewState()->leastEnd(), Nanos(0));
    }

    // A question is about the canvas that its step starts with, and the next one waits for it.
    void truth_stays_as_it_was_asked()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        LessonController* lessons = window.workspace().feature<LessonController>();
        lessons->start(QStringLiteral("bubbles"), false, 1);
        QVERIFY(ready(window));
        const LessonPage& page = lessons->session()->page();
        const auto reading = [&] {
            return readPage(lessons->session()->lesson(), page, lessons->session()->canvas(),
                            lessons->session()->learner(), false);
        };
        const auto of = [&](const char* id) {
            for (std::size_t i = 0; i < page.blocks.size(); ++i)
                if (const auto* quiz = std::get_if<lessons::Quiz>(page.blocks[i]); quiz != nullptr && quiz->id == id)
                    return reading().blocks[i];
            return BlockReading();
        };
        QVERIFY(!of("total").waits);
        QVERIFY(of("ratio").waits);
        for (const auto& [id, words] : {std::pair("total", "36"), {"not-yet", "6"}, {"nothing-left", "12"}})
            lessons->session()->say(id, words);
        QVERIFY2(of("ratio").waits, "the goal before it is not met");
        QVERIFY(lessons->session()->apply("set microbatches=8"));
        QVERIFY(ready(window));
        QVERIFY(!of("ratio").waits);
        lessons->session()->say("ratio", "3/4"); // for m = 4, though m is 8 by now; a fraction is a number
        QCOMPARE(of("ratio").state, lessons::Verdict::Pass);
        lessons->session()->say("ratio", "0.375");
        QCOMPARE(of("ratio").state, lessons::Verdict::Fail);
    }

    // One question on screen, with the tools that it takes, in view and with the focus; those answered keep their reply.
    void one_question_with_its_tools()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window, {1280, 700}));
        LessonController* lessons = window.workspace().feature<LessonController>();
        lessons->start(QStringLiteral("bubbles"), false, 1);
        QVERIFY(ready(window));
        LessonPanel* panel = lessons->panel();
        const auto cards = [&] {
            QStringList shown;
            for (const QWidget* card : panel->findChildren<QFrame*>())
                if (card->isVisible() && card->property("block").isValid()) shown << card->property("block").toString();
            return shown;
        };
        QCOMPARE(cards(), QStringList{QStringLiteral("total")});
        QVERIFY2(!panel->tools()->isVisible(), "adding up gaps takes no tool");
        for (const auto& [id, words] : {std::pair("total", "36"), {"not-yet", "6"}, {"nothing-left", "12"}}) {
            lessons->session()->say(id, words);
            QVERIFY(ready(window));
        }
        QVERIFY(cards().contains(QStringLiteral("twice-the-work")));
        QVERIFY(!cards().contains(QStringLiteral("ratio")));
        QTRY_VERIFY(panel->tools()->isVisible());
        QCOMPARE(panel->tools()->findChildren<QSlider*>().size(), qsizetype(1)); // not of chunks, W, a cap
        const auto field = [&] { return qobject_cast<QLineEdit*>(QApplication::focusWidget()); };
        QVERIFY(lessons->session()->apply("set microbatches=8"));
        QVERIFY(ready(window));
        QTRY_VERIFY2(field() != nullptr && field()->isVisible(), "the next question has the focus");
        QTRY_VERIFY2(!field()->visibleRegion().isEmpty(), "and is in view");
        QCOMPARE(field()->parentWidget()->parentWidget()->property("block").toString(), QStringLiteral("ratio"));
        QVERIFY2(!panel->tools()->isVisible(), "the ratio is a matter of arithmetic");
        QVERIFY(panel->plainText().contains(QStringLiteral("36. Each row works")));
    }

    // The first wrong answer gets a direction, the second a hint; the answer comes by its button, and counts for good.
    void the_answer_comes_by_its_button_and_counts()
    {
        const auto open = [&](MainWindow& window) {
            LessonController* lessons = window.workspace().feature<LessonController>();
            lessons->start(QStringLiteral("bubbles"), false, 1);
            return ready(window);
        };
        {
            MainWindow window;
            QVERIFY(WindowFixture::show(window));
            QVERIFY(open(window));
            LessonController* lessons = window.workspace().feature<LessonController>();
            LessonPanel* panel = lessons->panel();
            lessons->session()->say("total", "30");
            QVERIFY(ready(window));
            QVERIFY2(panel->plainText().contains(QStringLiteral("Too small.")), qPrintable(panel->plainText()));
            QVERIFY2(!panel->plainText().contains(QStringLiteral("Take one row")), qPrintable(panel->plainText()));
            lessons->session()->say("total", "40");
            QVERIFY(ready(window));
            QVERIFY2(panel->plainText().contains(QStringLiteral("Too large. Take one row")),
                     qPrintable(panel->plainText()));
            QCOMPARE(lessons->session()->hintsOf("total"), 1);
            QVERIFY(!panel->plainText().contains(QStringLiteral("36")));
            auto* show = named(panel, QStringLiteral("Show the solution"));
            QVERIFY(show != nullptr);
            show->click();
            QVERIFY(ready(window));
            QCOMPARE(lessons->session()->markOf("total"), lessons::Mark::Shown);
        }
        MainWindow again; // the answer is there, and is still not the learner's
        QVERIFY(WindowFixture::show(again));
        QVERIFY(open(again));
        QCOMPARE(again.workspace().feature<LessonController>()->session()->markOf("total"), lessons::Mark::Shown);
    }

    // The axis that a step starts with stays while its slider is moved: a gap of nine units is as wide as before.
    void the_axis_stays()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        Workspace& workspace = window.workspace();
        LessonController* lessons = workspace.feature<LessonController>();
        lessons->start(QStringLiteral("bubbles"), false, 1);
        QVERIFY(ready(window));
        const TimeRange before = workspace.viewState()->visible();
        QVERIFY(before.end >= 33 * rankShare); // of eight microbatches
        QVERIFY(lessons->session()->apply("set microbatches=8"));
        QVERIFY(ready(window));
        QVERIFY(workspace.viewState()->visible() == before);
        QVERIFY(lessons->session()->apply("set microbatches=12")); // 45 units: longer than the axis
        QVERIFY(ready(window));
        const TimeRange longer = workspace.viewState()->visible();
        QVERIFY(longer.end >= 45 * rankShare);
        QVERIFY(lessons->session()->apply("set microbatches=2"));
        QVERIFY(ready(window));
        QVERIFY(workspace.viewState()->visible() == longer);
    }

    // No order of buttons says which is right: it is not the file's, and the right one is anywhere.
    void choices_are_shuffled()
    {
        int questions = 0, first = 0;
        std::set<std::size_t> places;
        for (const lessons::Lesson& lesson : lessons::loadLibrary().lessons)
            for (const lessons::Quiz* quiz : lesson.all<lessons::Quiz>()) {
                if (quiz->choices.empty()) continue;
                const auto buttons = lessons::buttonsOf(quiz->id, quiz->choices);
                QVERIFY(std::is_permutation(buttons.begin(), buttons.end(), quiz->choices.begin()));
                QCOMPARE(lessons::buttonsOf(quiz->id, quiz->choices), buttons); // every time
                const auto right =
                    std::find(buttons.begin(), buttons.end(), lesson.solutionOf(quiz->id)->said.front().second);
                QVERIFY(right != buttons.end());
                ++questions;
                first += right == buttons.begin() ? 1 : 0;
                if (lesson.id == "read-a-trace") places.insert(static_cast<std::size_t>(right - buttons.begin()));
            }
        QVERIFY(questions >= 8);
        QVERIFY2(2 * first <= questions, qPrintable(QStringLiteral("%1 of %2").arg(first).arg(questions)));
        QCOMPARE(places.size(), std::size_t(4)); // of the faults of lesson 15
        QCOMPARE(lessons::buttonsOf("position", {"rank 0", "rank 2", "rank 3"}),
                 (std::vector<std::string>{"rank 0", "rank 2", "rank 3"}));
    }

    // What hangs is hatched, with arrows along the cycle; a repair takes both away.
    void an_order_that_can_not_run_is_marked()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        LessonController* lessons = window.workspace().feature<LessonController>();
        const TimelineView& view = *window.workspace().views().timeline;
        HangOverlay* overlay = nullptr;
        for (Overlay* one : view.overlays())
            if (auto* found = dynamic_cast<HangOverlay*>(one)) overlay = found;
        QVERIFY(overlay != nullptr);
        const HangOverlay& hang = *overlay;
        lessons->start(QStringLiteral("deadlock"), false, 1);
        QVERIFY(ready(window));
        QVERIFY(hang.hung());
        QCOMPARE(hang.stopped(view.scene()).size(), std::size_t(6)); // all but 0F0 and 1F0
        QCOMPARE(hang.waits(view.scene()).size(), std::size_t(4));   // what the question asks for
        QVERIFY(!lessons->rail()->isVisible());                      // the goal is not about time
        const QRectF one = hang.stopped(view.scene()).front().rect;
        QVERIFY(hang.describe(one.center()).plain().contains(QStringLiteral("Never runs")));
        QVERIFY(lessons->session()->apply("move 0F1 before 0B0"));
        QVERIFY(ready(window));
        QVERIFY(!hang.hung());
        lessons->session()->goTo(2); // sends without buffers: two of four ranks are the cycle
        QVERIFY(ready(window));
        QVERIFY(hang.hung());
        QCOMPARE(hang.waits(view.scene()).size(), std::size_t(2));
        for (const auto& [from, to] : hang.waits(view.scene()))
            for (const QRectF& end : {from, to}) QVERIFY(end.top() >= view.scene().rowRect(0, 2)->top() - 1);
        QVERIFY(lessons->session()->apply("set lower=grouped"));
        QVERIFY(ready(window));
        QVERIFY(!hang.hung());
        lessons->leave();
        QVERIFY(!hang.hung());
    }

    // What a question asks for is on screen: the step time and the peaks beside the tools, the memory charts.
    void what_is_asked_for_is_visible()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        LessonController* lessons = window.workspace().feature<LessonController>();
        lessons->start(QStringLiteral("one-forward-one-backward"), false, 2);
        QVERIFY(ready(window));
        const auto watched = [&] {
            for (const QLabel* label : lessons->panel()->tools()->findChildren<QLabel*>())
                if (label->isVisible() && label->accessibleName().startsWith(QStringLiteral("Now on the canvas")))
                    return label->accessibleName();
            return QString();
        };
        QCOMPARE(watched(), QStringLiteral("Now on the canvas: step time 33, peak 4, 3, 2, 1"));
        QVERIFY(window.workspace().views().memory->isVisible());
        QVERIFY(lessons->session()->apply("warmup 4,2,2,1"));
        QVERIFY(ready(window));
        QCOMPARE(watched(), QStringLiteral("Now on the canvas: step time 51, peak 4, 2, 2, 1"));
    }

    // A goal is said in words; the number of a goal that is to be found is not said at all.
    void goals_are_words()
    {
        for (const char* goal : {"not (m > 4*(p-1))", "not (m > 3*(p-1))"})
            QCOMPARE(figureWords(goal), QStringLiteral("no more microbatches than needed"));
        QCOMPARE(figureWords("bubble_fraction"), QStringLiteral("bubble ratio"));
    }

    // A mistake is said where it was made, one at a time.
    void one_mistake_where_it_was_made()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        LessonController* lessons = window.workspace().feature<LessonController>();
        auto* edit = window.workspace().feature<EditController>();
        lessons->start(m_file, false, 1);
        QVERIFY(ready(window));
        const auto under = [&] { // the tools
            for (const QLabel* label : lessons->panel()->tools()->findChildren<QLabel*>())
                if (label->isVisible() && label->accessibleName() == QStringLiteral("Why it is not possible"))
                    return label->text();
            return QString();
        };
        emit lessons->panel()->tools()->editAsked(QStringLiteral("swap 1F0 1B0"));
        QVERIFY(ready(window));
        QVERIFY(!under().isEmpty());
        QVERIFY(!edit->drag().hint()->isVisible());
        const Schedule before = edit->editor().schedule();
        int backward = 0;
        while (before.order[1][static_cast<std::size_t>(backward)].kind == OpKind::Forward) ++backward;
        QVERIFY(edit->editor().move({1, backward}, 0));
        QTRY_VERIFY2(edit->drag().hint()->isVisible(), "at the op that was moved");
        QVERIFY2(under().isEmpty(), qPrintable(under()));
        emit lessons->panel()->tools()->editAsked(QStringLiteral("swap 1F0 1B0"));
        QVERIFY(ready(window));
        QVERIFY(!under().isEmpty());
        QVERIFY(!edit->drag().hint()->isVisible());
    }

    // Chips stay where they are while ops are placed, and what can't be placed yet is readable.
    // From the guess to the second step without a mouse: Return answers and goes on, then places op by op.
    void return_leads_through_a_lesson()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        LessonController* lessons = window.workspace().feature<LessonController>();
        lessons->start(QStringLiteral("why-pipelines"));
        QVERIFY(ready(window));
        const auto press = [&] {
            QVERIFY(QApplication::focusWidget() != nullptr);
            QTest::keyClick(QApplication::focusWidget(), Qt::Key_Return);
            QVERIFY(ready(window));
        };
        const auto* next = named(lessons->panel(), QStringLiteral("Next"));
        const auto* reason = lessons->panel()->findChild<QLabel*>(QStringLiteral("nextReason"));
        QVERIFY(next != nullptr && !next->isEnabled());
        window.workspace().actions()["nextLessonStep"]->trigger();
        QCOMPARE(reason->property("role").toString(), QStringLiteral("worse")); // in the foot, always in view
        QTest::keyClicks(QApplication::focusWidget(), QStringLiteral("5"));
        press();
        QTRY_VERIFY(next->hasFocus());
        QCOMPARE(reason->text(), QStringLiteral("Alt+PgDown goes on"));
        QCOMPARE(reason->property("role").toString(), QStringLiteral("secondary"));
        press();
        QTRY_COMPARE(lessons->session()->pageIndex(), 1);
        OpTray* tray = window.workspace().feature<EditController>()->deck().tray();
        QTRY_VERIFY(tray->isAncestorOf(QApplication::focusWidget()));
        for (int left = 4; left > 0; --left) {
            QTRY_COMPARE(tray->count(), left);
            press();
        }
        QTRY_COMPARE(lessons->panel()->nextReason(), QString());
        QVERIFY(window.workspace().views().timeline->hasFocus()); // the tray is gone
        window.workspace().actions()["nextLessonStep"]->trigger();
        QVERIFY(ready(window));
        QTRY_VERIFY(tray->isAncestorOf(QApplication::focusWidget()));
    }

    void the_tray_keeps_its_order()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        LessonController* lessons = window.workspace().feature<LessonController>();
        lessons->start(QStringLiteral("why-pipelines"), false, 1);
        QVERIFY(ready(window));
        OpTray* tray = window.workspace().feature<EditController>()->deck().tray();
        const auto chips = [&] {
            QStringList names;
            for (const TrayOp& one : tray->findChild<OpTrayModel*>()->ops()) names << qs(toText(one.op));
            return names;
        };
        const QStringList before = chips();
        QCOMPARE(before.size(), qsizetype(4));
        QCOMPARE(qs(toText(tray->chosen().front())), QStringLiteral("0F0")); // the only one that can run
        emit lessons->panel()->tools()->editAsked(QStringLiteral("place 0F0"));
        QVERIFY(ready(window));
        QStringList left = before;
        left.removeAll(QStringLiteral("0F0"));
        QCOMPARE(chips(), left);
        QCOMPARE(qs(toText(tray->chosen().front())), QStringLiteral("1F0"));
    }

    // Cards speak the lesson's words, and say nothing twice.
    void a_gap_is_explained_in_the_lessons_words()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        LessonController* lessons = window.workspace().feature<LessonController>();
        lessons->start(QStringLiteral("bubbles"), false, 1);
        QVERIFY(ready(window));
        QVERIFY(lessons->panel()->plainText().contains(QStringLiteral("Waiting for the gradient")));
        emit window.workspace().views().timeline->selection().idleClicked(0, 0, 8 * rankShare);
        QTRY_VERIFY_WITH_TIMEOUT(lessons->gapCard() != nullptr, 20000);
        QStringList words;
        for (const QLabel* label : lessons->gapCard()->findChildren<QLabel*>()) words << label->text();
        QVERIFY2(words.front().startsWith(QStringLiteral("Waiting for the gradient, 9 units")),
                 qPrintable(words.join(QLatin1Char('\n'))));
        QVERIFY(!words.join(QLatin1Char(' ')).contains(QStringLiteral("costs nothing")));
        const TimelineView& view = *window.workspace().views().timeline;
        const CardText card =
            view.cardAt({view.scene().axis.toX(8 * rankShare), view.scene().rowRect(0, 0)->center().y()});
        QVERIFY2(card.plain().contains(QStringLiteral("Cause: Waiting for the gradient")), qPrintable(card.plain()));
    }

    // A puzzle is not solved by picking its solution: neither typed nor from a list.
    void a_schedule_is_picked_where_the_step_allows()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        LessonController* lessons = window.workspace().feature<LessonController>();
        lessons->start(QStringLiteral("zero-bubble"), false, 2);
        QVERIFY(ready(window));
        LessonSession* session = lessons->session();
        QVERIFY(session->lesson().check("filler") != nullptr && session->allows("move"));
        const Schedule before = session->canvas().schedule;
        for (const char* pick : {"load zb-h1", "rank 3: 3F0 3I0"}) {
            emit lessons->panel()->tools()->editAsked(QLatin1String(pick));
            QVERIFY(ready(window));
            QVERIFY2(session->canvas().schedule == before, pick);
            QVERIFY2(!lessons->refusal().isEmpty(), pick);
        }
        for (const QComboBox* list : lessons->panel()->tools()->findChildren<QComboBox*>())
            QVERIFY2(!list->isVisible() || list->findText(QStringLiteral("ZB-H1")) < 0,
                     qPrintable(list->accessibleName()));
        for (const QLabel* label : lessons->panel()->findChildren<QLabel*>()) // its hint says that it moves
            QVERIFY(!label->isVisible() || !label->text().contains(QStringLiteral("Shown")));
    }

    // What was answered is repeated once, also where the reply starts with it.
    void an_answer_is_repeated_once()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        LessonController* lessons = window.workspace().feature<LessonController>();
        lessons->start(QStringLiteral("bubbles"), false, 1);
        QVERIFY(ready(window));
        lessons->session()->say("total", "36");
        QVERIFY(ready(window));
        QString text = lessons->panel()->plainText();
        QVERIFY2(text.contains(QStringLiteral("36. Each row works 12 within 21")), qPrintable(text));
        QVERIFY2(!text.remove(QLatin1Char('*')).contains(QStringLiteral("36. 36.")), qPrintable(text));
    }

    // The letters of a formula are words once it is shown, and the marks of the rail say what they are.
    void letters_and_marks_are_words()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        LessonController* lessons = window.workspace().feature<LessonController>();
        lessons->start(QStringLiteral("why-pipelines"), false, 2);
        QVERIFY(ready(window));
        QVERIFY(lessons->session()->lesson().check("slide-in") != nullptr);
        emit lessons->panel()->tools()->editAsked(QStringLiteral("place 0F1 1; place 1F1; place 1B1; place 0B1"));
        QVERIFY(ready(window));
        QString text;
        for (const QLabel* label : lessons->panel()->findChildren<QLabel*>()) {
            QTextDocument page;
            page.setHtml(label->text());
            text += page.toPlainText() + QLatin1Char('\n');
        }
        QVERIFY2(text.contains(QStringLiteral("p = 2 ranks; m = 2 microbatches; T = 3, a forward and its backward")),
                 qPrintable(text));
        QStringList names;
        for (const auto& mark : lessons->rail()->marks()) names << mark.names;
        QVERIFY2(names.join(QLatin1Char(';')).contains(QStringLiteral("proven minimum")),
                 qPrintable(names.join(QLatin1Char(';'))));
        QVERIFY2(!names.join(QLatin1Char(';')).contains(QStringLiteral("par")),
                 qPrintable(names.join(QLatin1Char(';'))));
        QHelpEvent tip(QEvent::ToolTip, QPoint(300, 20), lessons->rail()->mapToGlobal(QPoint(300, 20)));
        QCoreApplication::sendEvent(lessons->rail(), &tip);
        QVERIFY2(QToolTip::text().contains(QStringLiteral("no order of these ops on these ranks is shorter")),
                 qPrintable(QToolTip::text()));
        QToolTip::hideText();
    }

    // The shelf counts up, and an empty list of runs takes none of its room.
    void the_shelf_counts_up()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        LessonController* lessons = window.workspace().feature<LessonController>();
        lessons->start(QStringLiteral("why-pipelines"));
        QVERIFY(ready(window));
        window.workspace().actions()["leaveLesson"]->trigger();
        QVERIFY(ready(window));
        QVERIFY(!window.workspace().views().runs->isVisible());
        int before = 0;
        for (const LessonCard* card : lessons->shelf()->cards()) {
            QVERIFY2(card->entry().lesson->number == before + 1, card->entry().lesson->id.c_str());
            before = card->entry().lesson->number;
        }
    }

    // Bytes have a picture, which follows the canvas.
    void bytes_have_a_picture()
    {
        const auto library = lessons::loadLibrary();
        const lessons::Lesson* lesson = library.find("sixteen-bytes");
        QVERIFY(lesson != nullptr);
        for (const LessonPage& page : pagesOf(*lesson)) {
            if (page.part != lessons::Part::Do) continue;
            auto canvas = lessons::startOf(*lesson, *lesson->step(page.step));
            QVERIFY(canvas);
            const auto bars = [&] { // now: weights, gradients, optimizer
                std::vector<double> parts;
                for (const BlockReading& block : readPage(*lesson, page, *canvas, {}, false).blocks)
                    if (block.figure)
                        for (const PlotSeries& series : block.figure->plot.series)
                            parts.push_back(series.points.at(1).y);
                return parts;
            };
            QCOMPARE(bars(), (std::vector<double>{15, 15, 90}));
            *canvas = lessons::applyEdits(*lessons::parseEdits("set shard=optimizer"), *canvas).value();
            QCOMPARE(bars(), (std::vector<double>{15, 15, 90.0 / 64}));
        }
    }

    // A card of several runs is named by what differs, in words, and says where to look; what is asked about a run
    // stands right below it.
    void cards_of_runs_say_what_differs()
    {
        int patients = 0;
        for (const lessons::Lesson& lesson : lessons::loadLibrary().lessons)
            for (const LessonPage& page : pagesOf(lesson)) {
                std::vector<const lessons::RunBlock*> runs;
                for (const lessons::Block* block : page.blocks) {
                    if (const auto* run = std::get_if<lessons::RunBlock>(block)) {
                        runs.push_back(run);
                        QVERIFY2(run->look.empty() || run->look.find(' ') != std::string::npos, run->look.c_str());
                    }
                    const auto* quiz = std::get_if<lessons::Quiz>(block);
                    if (quiz == nullptr || !quiz->id.starts_with("sheet-")) continue;
                    ++patients;
                    QVERIFY(!runs.empty());
                    QCOMPARE("patient-" + quiz->id.substr(6, 1), runs.back()->id);
                }
                std::set<QString> names;
                for (const lessons::RunBlock* run : runs) names.insert(runWords(*run));
                QCOMPARE(names.size(), runs.size());
                if (runs.size() < 2) continue;
                for (const QString& name : names)
                    QVERIFY2(name.contains(QLatin1Char(' ')) || name == QStringLiteral("DualPipe"), qPrintable(name));
            }
        QCOMPARE(patients, 8); // what and where, of four patients
    }

    // What a step says after its goal opens the next page, with its own numbers.
    void a_step_does_not_give_the_next_away()
    {
        for (const lessons::Lesson& lesson : lessons::loadLibrary().lessons)
            for (const LessonPage& page : pagesOf(lesson)) {
                bool asked = false, ended = false;
                for (const lessons::Block* block : page.blocks) {
                    const bool prose = std::holds_alternative<lessons::Prose>(*block);
                    asked = asked || !prose;
                    ended = asked && prose;
                }
                if (page.carried > 0) QVERIFY(std::holds_alternative<lessons::Prose>(*page.blocks.front()));
                if (!ended || page.part != lessons::Part::Do) continue;
                // Only at the end of the part: hidden until the goals are met.
                const lessons::Step* step = lesson.step(page.step);
                QVERIFY(step != nullptr);
                const auto start = lessons::startOf(lesson, *step);
                QVERIFY(start);
                const PageReading reading = readPage(lesson, page, *start, {}, false);
                QVERIFY2(reading.blocks.back().waits || reading.passed, lesson.id.c_str());
            }
    }

    // The wheel scrolls the page; it never changes a value under the pointer.
    void the_wheel_changes_no_value()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        LessonController* lessons = window.workspace().feature<LessonController>();
        lessons->start(QStringLiteral("microbatches"), false, 1);
        QVERIFY(ready(window));
        const auto fields = lessons->panel()->tools()->findChildren<QSpinBox*>();
        const auto sliders = lessons->panel()->tools()->findChildren<QSlider*>();
        QVERIFY(!fields.isEmpty() && !sliders.isEmpty());
        const int before = fields.front()->value();
        for (QWidget* one : {static_cast<QWidget*>(fields.front()), static_cast<QWidget*>(sliders.front())}) {
            QWheelEvent wheel(QPointF(5, 5), one->mapToGlobal(QPointF(5, 5)), {}, {0, 120}, Qt::NoButton,
                              Qt::NoModifier, Qt::NoScrollPhase, false);
            QApplication::sendEvent(one, &wheel);
        }
        QCOMPARE(fields.front()->value(), before);
        sliders.front()->setFocus();
        QTest::keyClick(sliders.front(), Qt::Key_Right); // the keys do
        QVERIFY(ready(window));
        QCOMPARE(lessons->session()->canvas().settings.microbatches, before + 1);
    }
    void a_mistake_in_a_file_is_told_with_its_line()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        QString broken = QString::fromUtf8(smallLesson);
        broken.replace(QStringLiteral("peak_activation <= [2,1]"), QStringLiteral("peak_activation <= [2,"));
        const QString path = write(QStringLiteral("broken.md"), broken);
        window.workspace().feature<FileOpening>()->openFiles({path});
        QVERIFY2(
            window.workspace().banner()->text().contains(QRegularExpression(QStringLiteral("broken\\.md:\\d+:\\d+"))),
            qPrintable(window.workspace().banner()->text()));
        QVERIFY(window.workspace().feature<LessonController>()->session() == nullptr);
        // A valid lesson dropped onto the window starts.
        QMimeData data;
        data.setUrls({QUrl::fromLocalFile(m_file)});
        QDragEnterEvent enter(QPoint(10, 10), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(&window, &enter);
        QVERIFY(enter.isAccepted());
        QDropEvent drop(QPointF(10, 10), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(&window, &drop);
        QVERIFY(ready(window));
        QVERIFY(window.workspace().feature<LessonController>()->session() != nullptr);
    }

    void a_gap_of_the_edited_order_is_explained()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.workspace().feature<LessonController>()->start(m_file, false, 1);
        QVERIFY(ready(window));
        // rank 1 waits for its first forward
        emit window.workspace().views().timeline->selection().idleClicked(0, 1, rankShare / 2);
        QTRY_VERIFY_WITH_TIMEOUT(window.workspace().feature<LessonController>()->gapCard() != nullptr, 20000);
        QVERIFY(window.workspace().feature<LessonController>()->gapCard()->findChildren<QLabel*>().size() >= 2);
    }

    // With nothing placed the axis has the units that the step needs and the legend is empty.
    void an_empty_canvas_has_an_axis_of_units()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.workspace().feature<LessonController>()->start(QStringLiteral("why-pipelines"), false, 1);
        QVERIFY(ready(window));
        QCOMPARE(window.workspace().shown().mode(), Shown::Mode::Edit);
        QCOMPARE(window.workspace().viewState()->extent().duration(), 8 * rankShare);
        QVERIFY(window.workspace().views().legend->entries().empty());
        QVERIFY2(window.workspace().views().timeline->statusText().contains(QStringLiteral("unit")),
                 qPrintable(window.workspace().views().timeline->statusText()));
        QVERIFY2(!window.workspace().views().timeline->statusText().contains(QStringLiteral("0.0000")),
                 qPrintable(window.workspace().views().timeline->statusText()));
        emit window.workspace().feature<LessonController>()->panel()->tools()->editAsked(QStringLiteral("place 0F0 0"));
        QVERIFY(ready(window));
        QTRY_VERIFY_WITH_TIMEOUT(!window.workspace().views().legend->entries().empty(), 20000);
        QCOMPARE(window.workspace().viewState()->extent().duration(), 8 * rankShare);
    }

    // The rail shows the proven bound, what is taught and what has been reached, for the same ops on the same ranks.
    void the_rail_tells_what_was_reached()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        const auto marks = [&](const char* lesson) {
            window.workspace().feature<LessonController>()->start(QLatin1String(lesson), false, 1);
            if (!ready(window)) return std::map<double, QString>();
            std::map<double, QString> all;
            for (const auto& mark : window.workspace().feature<LessonController>()->rail()->marks())
                all[mark.value] = mark.names;
            return all;
        };
        auto latency = marks("latency"); // its bound, 39, is what the open guess asks for
        QCOMPARE(latency.size(), std::size_t(1));
        QCOMPARE(latency[49], QStringLiteral("you"));
        auto own = marks("your-own");
        QCOMPARE(own[28.5], QStringLiteral("lower bound (no known schedule reaches it)"));
        QVERIFY(!own.contains(30)); // the best known, which its guess asks for
        QCOMPARE(own[31], QStringLiteral("ZB-auto"));
        // "33. rank 0 waits" is a sentence, not the first item of a list
        QVERIFY(!lessonHtml(QStringLiteral("33. rank 0 waits")).contains(QStringLiteral("<ol")));
        QCOMPARE(lessonHtml(QStringLiteral("1. one\n2. two")).count(QStringLiteral("<li>")), qsizetype(2));
    }

    // A step's `compare:` is above the canvas, or behind it as outlines in edit mode; `view:` opens or offers a view.
    void a_step_compares_and_opens_views()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.workspace().feature<LessonController>()->start(QStringLiteral("latency"), false, 1);
        QVERIFY(ready(window));
        QCOMPARE(window.workspace().shown().mode(), Shown::Mode::Edit);
        QTRY_VERIFY_WITH_TIMEOUT(window.workspace().settled(), 20000);
        QVERIFY(!window.workspace().actions()["ghostLibrary"]->isChecked());
        auto* outlines =
            named(window.workspace().feature<LessonController>()->panel(), QStringLiteral("Outlines of GPipe"));
        QVERIFY(outlines != nullptr);
        outlines->click();
        QVERIFY(window.workspace().actions()["ghostLibrary"]->isChecked());
        QVERIFY(window.workspace().settled());
        window.workspace().feature<LessonController>()->start(QStringLiteral("read-a-trace"), false, 1);
        QVERIFY(ready(window));
        QTRY_COMPARE_WITH_TIMEOUT(window.workspace().shown().mode(), Shown::Mode::Compare, 20000);
        const auto& panels = window.workspace().views().timeline->panels();
        QCOMPARE(panels.size(), std::size_t(2));
        QCOMPARE(panels[0]->duration, 35 * rankShare);                 // sound
        QCOMPARE(panels[1]->duration, 53 * rankShare + rankShare / 2); // an order that is wrong
        QVERIFY(window.workspace().feature<LessonController>()->panel()->isVisible());
        // hidden memory charts return for a step about memory
        window.workspace().actions()["leaveLesson"]->trigger();
        if (window.workspace().actions()["memory"]->isChecked()) window.workspace().actions()["memory"]->trigger();
        window.workspace().feature<LessonController>()->start(QStringLiteral("memory-wall"), false, 1);
        QVERIFY(ready(window));
        QVERIFY(window.workspace().actions()["memory"]->isChecked());
        window.workspace().feature<LessonController>()->start(QStringLiteral("microbatches"), false, 1);
        QVERIFY(ready(window));
        QVERIFY(named(window.workspace().feature<LessonController>()->panel(), QStringLiteral("Open the explorer")) !=
                nullptr);
    }

    void leaving_gives_the_window_back()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.workspace().feature<LessonController>()->start(m_file, false, 1);
        QVERIFY(ready(window));
        QVERIFY(!window.workspace().views().side->isVisible());
        QTest::keyClick(&window, Qt::Key_Q);
        QVERIFY(!window.workspace().feature<LessonController>()->panel()->isVisible());
        QTest::keyClick(&window, Qt::Key_Q);
        QVERIFY(window.workspace().feature<LessonController>()->panel()->isVisible());
        window.workspace().actions()["leaveLesson"]->trigger();
        QVERIFY(window.workspace().feature<LessonController>()->session() == nullptr);
        QVERIFY(!window.workspace().feature<LessonController>()->panel()->isVisible());
        QVERIFY(!window.workspace().feature<LessonController>()->rail()->isVisible());
        QVERIFY(!window.workspace().room().panels()->isHidden());
        QVERIFY(window.workspace().feature<LessonController>()->shelf()->isVisible());
        // behind the shelf is the first page again, and no list that it could name
        QVERIFY(window.workspace().runs()->refs().empty());
        for (const QLabel* label : window.findChild<WelcomePage*>()->findChildren<QLabel*>())
            QVERIFY2(!label->text().contains(QStringLiteral("in the list")), qPrintable(label->text()));
    }

    void the_glossary_links_what_is_on_screen()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        GlossaryPanel* glossary = window.workspace().feature<LessonController>()->glossary();
        const int all = glossary->found();
        QCOMPARE(static_cast<std::size_t>(all), lessons::glossary().size());
        glossary->search(QStringLiteral("VPP"));
        QVERIFY(glossary->found() >= 1);
        QVERIFY(glossary->found() < all);
        QLabel label(QStringLiteral("Bubble fraction"));
        const lessons::Term* term = termOn(&label, {});
        QVERIFY(term != nullptr);
        window.workspace().feature<LessonController>()->showTerm(qs(term->id));
        QCOMPARE(glossary->shownTerm(), qs(term->id));
        QVERIFY(glossary->text().contains(qs(term->name)));
        std::set<std::string> linked;
        const QString html = lessonHtml(QStringLiteral("The bubble is **idle**, and a bubble again; `code`."), &linked);
        QCOMPARE(html.count(QStringLiteral("href=\"term:")), static_cast<qsizetype>(linked.size()));
        QVERIFY(html.contains(QStringLiteral("<code>code</code>")));
        QVERIFY(!linked.empty());
    }

    void pages_of_every_lesson_fit_in_both_themes_data()
    {
        QTest::addColumn<QString>("id");
        for (const lessons::Lesson& lesson : lessons::loadLibrary().lessons)
            QTest::newRow(lesson.id.c_str()) << qs(lesson.id);
    }
    void pages_of_every_lesson_fit_in_both_themes()
    {
        QFETCH(QString, id);
        MainWindow window;
        QVERIFY(WindowFixture::show(window, {1280, 800}));
        window.workspace().feature<LessonController>()->start(id);
        QVERIFY(ready(window));
        LessonPanel* panel = window.workspace().feature<LessonController>()->panel();
        const auto pages = static_cast<int>(window.workspace().feature<LessonController>()->session()->pages().size());
        // A theme is chosen once for all pages, and the next lesson starts in it: styling every widget again takes
        // longer than a page.
        const ThemeChoice other = m_theme == ThemeChoice::Light ? ThemeChoice::Dark : ThemeChoice::Light;
        for (const ThemeChoice theme : {m_theme, other}) {
            Appearance::choose(theme);
            m_theme = theme;
            for (int page = 0; page < pages; ++page) {
                window.workspace().feature<LessonController>()->session()->goTo(page);
                QVERIFY(ready(window));
                pageFits(panel, page);
                if (QTest::currentTestFailed()) return;
            }
        }
    }

private:
    ThemeChoice m_theme = ThemeChoice::Light;

    static void pageFits(LessonPanel* panel, int page)
    {
        QVERIFY(!panel->plainText().contains(QStringLiteral("{{")));
        const QImage image = panel->grab().toImage();
        std::set<QRgb> colours;
        for (int y = 0; y < image.height(); y += 3)
            for (int x = 0; x < image.width(); x += 3) colours.insert(image.pixel(x, y));
        QVERIFY2(colours.size() > 12, qPrintable(QStringLiteral("page %1").arg(page + 1)));
        // Nothing extends beyond the panel's edge, and no label is lower than its text.
        for (const QLabel* label : panel->findChildren<QLabel*>()) {
            if (!label->isVisible() || label->text().isEmpty()) continue;
            const QRect place(label->mapTo(panel, QPoint()), label->size());
            QVERIFY2(place.left() >= 0 && place.right() <= panel->width(), qPrintable(label->text()));
            if (label->wordWrap())
                QVERIFY2(label->height() + 1 >= label->heightForWidth(label->width()), qPrintable(label->text()));
        }
    }
};

QTEST_MAIN(TestLessons)
#include "tst_lessons.moc"
