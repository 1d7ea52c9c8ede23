// Each lesson is played from its text alone as a learner does who errs first, through the widgets: guesses and answers
// are typed or chosen, wrong ones before right ones, goals are met by typed edits, Next goes on. Offscreen each lesson by the keyboard alone; on a real X server all in one sitting, by
// its mouse and keyboard. On the way no text is clipped or printed over another, no answer is given away before its
// guess, no raw key is shown, and an answer that was right stays right whatever happens to the canvas.
#include <cmath>

#include <QButtonGroup>
#include <QDir>
#include <QElapsedTimer>
#include <QLabel>
#include <QLayout>
#include <QLineEdit>
#include <QPushButton>
#include <QRegularExpression>
#include <QScrollArea>
#include <QStatusBar>

#include "app/ui/edit/edit_autosave.h"
#include "app/ui/edit/edit_controller.h"
#include "app/ui/lessons/lesson_controller.h"
#include "app/ui/lessons/lesson_session.h"
#include "app/ui/workspace/banner.h"
#include "real_input.h"
#include "text_fit.h"
#include "traces/lessons/check_lesson.h"
#include "widgets/edit/op_tray.h"
#include "widgets/lessons/lesson_shelf.h"
#include "widgets/lessons/score_rail.h"
#include "window_fixture.h"

using namespace stagewright;

class TestLessonPlay : public QObject {
    Q_OBJECT
    std::unique_ptr<WindowFixture> m_fixture;

    static bool ready(MainWindow& window)
    {
        return QTest::qWaitFor([&] { return window.workspace().settled(); }, 60000) && (QTest::qWait(20), true) &&
               QTest::qWaitFor([&] { return window.workspace().settled(); }, 60000);
    }
    static LessonController& lessonsOf(MainWindow& window) { return *window.workspace().feature<LessonController>(); }

    // What the learner can read now, outside of what is asked.
    static QStringList visibleTexts(MainWindow& window)
    {
        QStringList texts{window.statusBar()->currentMessage(), window.windowTitle()};
        for (const QLabel* label : window.findChildren<QLabel*>())
            if (label->isVisible()) texts << label->text();
        for (const auto& mark : lessonsOf(window).rail()->marks())
            if (lessonsOf(window).rail()->isVisible() && !mark.guess)
                texts << mark.names + QLatin1Char(' ') + QString::number(mark.value);
        return texts;
    }
    // Where a number is said as a number of its own, or as one of units. Not what the learner has now, "44/39": the
    // canvas shows it.
    static QRegularExpression saying(const QString& number)
    {
        const QString whole = QStringLiteral("(?<![\\w.])%1(?![\\w./])").arg(QRegularExpression::escape(number));
        return QRegularExpression(number.size() > 1 ? whole : whole + QStringLiteral("(?= units)"));
    }
    // What gives the answer of a guess away while the page's goals are open; empty: nothing.
    static QString givenAway(MainWindow& window, const LessonPage& page)
    {
        const LessonSession& session = *lessonsOf(window).session();
        const lessons::Step* step = session.lesson().step(0);
        auto start = step == nullptr ? Result<lessons::Canvas>(tl::unexpected(Error{}))
                                     : lessons::startOf(session.lesson(), *step);
        if (!start) return {};
        const lessons::StepState state(session.lesson(), *step, *start, session.learner());
        QStringList texts = lessonsOf(window).panel()->plainText().split(QLatin1Char('\n'));
        for (const auto& mark : lessonsOf(window).rail()->marks())
            if (lessonsOf(window).rail()->isVisible() && !mark.guess && !mark.yours)
                texts << mark.names + QLatin1Char(' ') + QString::number(mark.value);
        for (const lessons::Predict* predict : page.guesses) {
            const auto truth = state.evaluate(predict->truth);
            if (!truth || truth->number() == nullptr) continue;
            // the step starts with what was asked: the canvas shows it
            if (std::abs(*truth->number() -
                         readPage(session.lesson(), page, session.canvas(), session.learner(), false).makespan) < 1e-9)
                continue;
            const QString number = qs(lessons::toText(*truth));
            for (const QString& text : texts)
                if (text.contains(saying(number)) && !qs(state.say(predict->ask)).contains(saying(number)))
                    return number + QStringLiteral(" by: ") + text;
        }
        return {};
    }
    // The lesson's field or choices for a question; by what the learner sees: its card holds the question's text.
    static QWidget* cardOf(LessonPanel& panel, const QString& id)
    {
        for (QWidget* card : panel.findChildren<QWidget*>())
            if (card->property("block").toString() == id) return card;
        return nullptr;
    }
    static bool onServer() { return RealInput::missing().isEmpty(); }
    static void bring(QWidget* widget) // into view, as by scrolling to it
    {
        for (QWidget* above = widget->parentWidget(); above != nullptr; above = above->parentWidget())
            if (auto* scroll = qobject_cast<QScrollArea*>(above)) scroll->ensureWidgetVisible(widget, 0, 20);
        QTest::qWait(onServer() ? 60 : 0);
        if (!onServer()) return;
        // a note may have come meanwhile: what was aimed at has moved
        for (QWidget* above = widget->parentWidget(); above != nullptr; above = above->parentWidget())
            if (auto* scroll = qobject_cast<QScrollArea*>(above)) scroll->ensureWidgetVisible(widget, 0, 20);
    }
    static void press(QAbstractButton* button)
    {
        bring(button);
        if (onServer()) {
            QVERIFY(RealInput::click(button));
            return;
        }
        button->setFocus();
        QTest::keyClick(button, Qt::Key_Space);
    }
    static void enter(QLineEdit* field, const QString& words)
    {
        bring(field);
        if (onServer()) {
            QVERIFY(RealInput::click(field));
            QVERIFY(RealInput::key(QStringLiteral("ctrl+a")));
            QVERIFY(RealInput::type(words));
            QVERIFY(RealInput::key(QStringLiteral("Return")));
            return;
        }
        field->setFocus();
        field->selectAll();
        QTest::keyClicks(field, words);
        QTest::keyClick(field, Qt::Key_Return);
    }
    // For whoever looks at them.
    static void keepPicture(MainWindow& window, const QString& name)
    {
        const QString folder = qEnvironmentVariable("STAGEWRIGHT_PLAY_PICTURES");
        if (!folder.isEmpty()) window.grab().save(folder + QLatin1Char('/') + name + QStringLiteral(".png"));
    }
    static bool answer(LessonPanel& panel, const std::string& id, const QString& words)
    {
        QWidget* card = cardOf(panel, qs(id));
        if (card == nullptr || !card->isVisible()) return false;
        for (QPushButton* choice : card->findChildren<QPushButton*>())
            if (choice->isCheckable() && choice->text() == words) {
                press(choice);
                return true;
            }
        auto* field = card->findChild<QLineEdit*>();
        if (field == nullptr) return false;
        enter(field, words);
        return true;
    }
    // The solution as edits that a learner may type in this step.
    static QString editsFor(const LessonSession& session, const lessons::Solution& solution)
    {
        QStringList edits;
        if (!solution.schedule.empty() || !solution.rows.empty()) {
            const auto canvas = lessons::canvasOf(session.lesson(), solution);
            if (!canvas) return {};
            if (!solution.schedule.empty() && session.allows("library")) {
                edits << QStringLiteral("load ") + qs(solution.schedule);
            } else if (session.allows("text")) {
                for (std::size_t rank = 0; rank < canvas->schedule.order.size(); ++rank) {
                    QStringList ops;
                    for (const Op& op : canvas->schedule.order[rank]) ops << qs(toText(op));
                    edits << QStringLiteral("rank %1: %2").arg(rank).arg(ops.join(QLatin1Char(' ')));
                }
            } else {
                QStringList warmups;
                for (const auto& row : canvas->schedule.order) {
                    int forwards = 0;
                    for (const Op& op : row) {
                        if (op.kind != OpKind::Forward) break;
                        ++forwards;
                    }
                    warmups << QString::number(forwards);
                }
                edits << QStringLiteral("warmup ") + warmups.join(QLatin1Char(','));
            }
            if (!solution.schedule.empty()) return edits.join(QStringLiteral("; ")); // its edits are in the canvas
        }
        for (const lessons::EditCommand& edit : solution.edits) edits << qs(edit.text());
        return edits.join(QStringLiteral("; "));
    }
    // Text that does not fit, of labels and of what is painted; fields over each other.
    static QStringList faultsOf(LessonPanel& panel)
    {
        QStringList faults = clipped(&panel) + overlapping(&panel);
        for (const QWidget* widget : panel.findChildren<QWidget*>())
            if (widget->isVisibleTo(&panel) && widget->hasHeightForWidth() &&
                widget->height() + 1 < widget->heightForWidth(widget->width()))
                faults << described(widget) +
                              QStringLiteral(" is too low: %1 of %2 at %3 ")
                                  .arg(widget->height())
                                  .arg(widget->heightForWidth(widget->width()))
                                  .arg(widget->width()) +
                              widget->accessibleName();
        QList<const QWidget*> parts; // that a layout places: texts, pictures, fields, cards
        for (const QWidget* widget : panel.findChildren<QWidget*>())
            if (widget->isVisibleTo(&panel) && !internal(widget) && widget->parentWidget()->layout() != nullptr &&
                widget->parentWidget()->layout()->indexOf(widget) >= 0)
                parts << widget;
        for (qsizetype i = 0; i < parts.size(); ++i)
            for (qsizetype k = 0; k < i; ++k)
                if (parts[i]->parentWidget() == parts[k]->parentWidget() &&
                    parts[i]->geometry().intersects(parts[k]->geometry()))
                    faults << described(parts[i]) + QStringLiteral(" lies over ") + described(parts[k]);
        for (const QWidget* part : parts)
            if (part->parentWidget()->height() > 0 && part->geometry().bottom() > part->parentWidget()->height())
                faults << described(part) + QStringLiteral(" reaches beyond its card");
        return faults;
    }
    // What can be pressed or filled in is reached with Tab.
    static QStringList outOfReach(LessonPanel& panel)
    {
        QStringList found;
        for (const QWidget* widget : panel.findChildren<QWidget*>()) {
            const bool input = widget->inherits("QAbstractButton") || widget->inherits("QLineEdit") ||
                               widget->inherits("QComboBox") || widget->inherits("QAbstractSpinBox") ||
                               widget->inherits("QAbstractSlider");
            // one of them has Tab, the others arrows
            if (const auto* choice = qobject_cast<const QAbstractButton*>(widget);
                choice != nullptr && choice->group() != nullptr) {
                const auto buttons = choice->group()->buttons();
                if (std::any_of(buttons.begin(), buttons.end(),
                                [](const QAbstractButton* one) { return (one->focusPolicy() & Qt::TabFocus) != 0; }))
                    continue;
            }
            if (!input || internal(widget) || widget->inherits("QScrollBar") || !widget->isVisibleTo(&panel) ||
                !widget->isEnabled())
                continue;
            if ((widget->focusPolicy() & Qt::TabFocus) == 0) found << described(widget);
        }
        return found;
    }

    // The lesson's wrong answers to a question, at least two; of those that take a number a made one beside it.
    static QStringList wrongAnswers(const lessons::Lesson& lesson, const lessons::Quiz& quiz)
    {
        QStringList all;
        for (const lessons::Wrong* wrong : lesson.all<lessons::Wrong>())
            for (const auto& [id, words] : wrong->said)
                if (wrong->check == quiz.id && id == quiz.id) all << qs(words);
        if (all.size() >= 2) return all;
        for (const std::string& choice : quiz.choices)
            if (!all.contains(qs(choice)) && qs(choice) != qs(lesson.solutionOf(quiz.id)->said.front().second))
                all << qs(choice);
        if (quiz.choices.empty() && !all.isEmpty()) all << QStringLiteral("77");
        return all;
    }
    // Errs twice: the first miss gets a direction, the second a hint, and none the answer.
    static void errs(MainWindow& window, const lessons::Quiz& quiz, const QString& where)
    {
        LessonPanel& panel = *lessonsOf(window).panel();
        LessonSession& session = *lessonsOf(window).session();
        const QString truth = qs(session.lesson().solutionOf(quiz.id)->said.front().second);
        const auto hints = session.lesson().hintsOf(quiz.id);
        int missed = 0;
        for (const QString& wrong : wrongAnswers(session.lesson(), quiz).mid(0, 2)) {
            QVERIFY2(answer(panel, quiz.id, wrong), qPrintable(where + qs(quiz.id)));
            QVERIFY(ready(window));
            ++missed;
            QVERIFY2(session.markOf(quiz.id) < lessons::Mark::Shown, qPrintable(where + wrong));
            QCOMPARE(session.missesOf(quiz.id), missed);
            QCOMPARE(session.hintsOf(quiz.id), missed >= 2 && !hints.empty() ? 1 : 0);
            const LessonPage page = session.page();
            const PageReading reading = readPage(session.lesson(), page, session.canvas(), session.learner(), false);
            for (std::size_t i = 0; i < page.blocks.size(); ++i) {
                const auto* one = std::get_if<lessons::Quiz>(page.blocks[i]);
                if (one == nullptr || one->id != quiz.id) continue;
                QCOMPARE(reading.open, static_cast<int>(i));
                const QString reply = replyOf(reading.blocks[i], missed);
                QVERIFY2(!reading.blocks[i].direction.isEmpty() && reply.startsWith(reading.blocks[i].direction),
                         qPrintable(where + reply));
                QVERIFY2(!reading.blocks[i].general || missed > 1 || reply == reading.blocks[i].direction,
                         qPrintable(where + reply));
                QVERIFY2(!reply.contains(saying(truth)), qPrintable(where + reply));
                QVERIFY2(panel.plainText().contains(reading.blocks[i].direction), qPrintable(where + reply));
            }
        }
    }
    // A wrong order, where the step lets the learner type it, is not taken for the goal.
    static void errs(MainWindow& window, const lessons::Check& check, QLineEdit* words, const QString& where)
    {
        LessonSession& session = *lessonsOf(window).session();
        for (const lessons::Wrong* wrong : session.lesson().all<lessons::Wrong>()) {
            if (wrong->check != check.id) continue;
            lessons::Solution as;
            static_cast<lessons::GivenAnswer&>(as) = *wrong;
            enter(words, editsFor(session, as));
            QVERIFY(ready(window));
            QVERIFY2(session.markOf(check.id) < lessons::Mark::Shown, qPrintable(where + qs(wrong->says)));
            break;
        }
        session.reset();
        QVERIFY(ready(window));
    }

    // A page: what is asked is answered, what is to be done is done. Its runs, if it has any, are left alone. The test
    // has failed where it can't be played.
    static void playPage(MainWindow& window)
    {
        LessonController& lessons = lessonsOf(window);
        LessonPanel& panel = *lessons.panel();
        LessonSession& session = *lessons.session();
        const QString id = qs(session.lesson().id);
        const int page = session.pageIndex();
        const QString where = QStringLiteral("page %1: ").arg(page + 1);
        const auto fits = [&] {
            const QStringList faults = faultsOf(panel) + outOfReach(panel);
            // once it is laid out
            if (!faults.isEmpty() &&
                QTest::qWaitFor([&] { return (faultsOf(panel) + outOfReach(panel)).isEmpty(); }, 1500))
                return true;
            if (!faults.isEmpty()) qWarning().noquote() << where << faults.join(QLatin1Char('\n'));
            return faults.isEmpty();
        };
        QVERIFY(fits());
        const LessonPage now = session.page();
        keepPicture(window, QStringLiteral("%1-%2-a").arg(id).arg(page + 1));
        const auto goal = std::find_if(now.blocks.begin(), now.blocks.end(), [](const lessons::Block* block) {
            return std::holds_alternative<lessons::Check>(*block);
        });
        const lessons::Block* firstGoal = goal == now.blocks.end() ? nullptr : *goal;
        for (const lessons::Block* block : now.blocks) {
            if (const auto* predict = std::get_if<lessons::Predict>(block)) {
                const lessons::Step* step = session.lesson().step(0);
                QVERIFY(step != nullptr);
                auto start = lessons::startOf(session.lesson(), *step);
                QVERIFY(start);
                const lessons::StepState state(session.lesson(), *step, *start, session.learner());
                const auto truth = state.evaluate(predict->truth);
                QVERIFY(truth);
                if (truth->number() != nullptr) { // nothing on screen says it, unless the question itself does
                    const QString number = qs(lessons::toText(*truth));
                    const QRegularExpression said(
                        QStringLiteral("(?<![\\d.])%1(?![\\d.]|\\d)").arg(QRegularExpression::escape(number)));
                    for (const QString& text : visibleTexts(window))
                        if (text.contains(said) && !qs(state.say(predict->ask)).contains(said) && number.size() > 1)
                            QFAIL(qPrintable(where + number + QStringLiteral(" is given away by: ") + text));
                }
                QVERIFY2(answer(panel, predict->id,
                                predict->choices.empty() ? QStringLiteral("7/2") : qs(predict->choices.front())),
                         predict->id.c_str());
                QVERIFY(ready(window));
                QCOMPARE(session.learner().said.count(predict->id), std::size_t(1));
            } else if (const auto* check = std::get_if<lessons::Check>(block)) {
                const lessons::Solution* solution = session.lesson().solutionOf(check->id);
                if (!check->graded || solution == nullptr) continue;
                QVERIFY(!panel.nextReason().isEmpty());
                if (block == firstGoal)
                    QVERIFY2(givenAway(window, now).isEmpty(), qPrintable(where + givenAway(window, now)));
                auto* words = panel.findChild<QLineEdit*>(QStringLiteral("editInWords"));
                QVERIFY2(words != nullptr && words->isVisible(), check->id.c_str());
                const bool first = check == session.lesson().all<lessons::Check>().front();
                if (!onServer()) errs(window, *check, words, where);
                if (QTest::currentTestFailed()) return;
                if (first) keepPicture(window, QStringLiteral("%1-%2-erred").arg(id).arg(page + 1));
                words = panel.findChild<QLineEdit*>(QStringLiteral("editInWords"));
                const QString edits = editsFor(session, *solution);
                enter(words, edits);
                QVERIFY(ready(window));
                QVERIFY2(session.markOf(check->id) == lessons::Mark::Done,
                         qPrintable(where + edits + QLatin1Char('\n') + lessons.refusal() + QLatin1Char('\n') +
                                    panel.plainText()));
            } else if (const auto* quiz = std::get_if<lessons::Quiz>(block)) {
                const lessons::Solution* solution = session.lesson().solutionOf(quiz->id);
                QVERIFY(solution != nullptr);
                if (now.part == lessons::Part::Prove) continue; // after the runs
                const auto said = std::find_if(solution->said.begin(), solution->said.end(),
                                               [&](const auto& one) { return one.first == quiz->id; });
                QVERIFY2(said != solution->said.end(), quiz->id.c_str());
                const auto* words = panel.findChild<QLineEdit*>(QStringLiteral("editInWords"));
                QCOMPARE(words->isVisible(), !quiz->with.empty()); // its tools, and no other
                if (!onServer()) errs(window, *quiz, where);
                if (QTest::currentTestFailed()) return;
                keepPicture(window, QStringLiteral("%1-%2-%3-erred").arg(id).arg(page + 1).arg(qs(quiz->id)));
                QVERIFY2(answer(panel, quiz->id, qs(said->second)), qPrintable(where + qs(quiz->id)));
                QVERIFY(ready(window));
                QVERIFY2(session.markOf(quiz->id) == lessons::Mark::Done, qPrintable(where + panel.plainText()));
            }
            QVERIFY(fits());
        }
        static const QRegularExpression raw(
            QStringLiteral("\\b[a-z]+_[a-z]+\\b|\\bsum\\(|\\bcount\\(|\\brun\\(|\\{\\{|activation shares"));
        QVERIFY2(!panel.plainText().contains(raw), qPrintable(where + panel.plainText()));
        if (now.part == lessons::Part::Do) { // changing the canvas changes no answer that was right
            if (session.allows("settings")) {
                QVERIFY(session.apply("set comm=" + std::to_string(session.canvas().settings.comm + 1)) || true);
                QVERIFY(ready(window));
                const PageReading reading = readPage(session.lesson(), now, session.canvas(), session.learner(), false);
                for (std::size_t i = 0; i < now.blocks.size(); ++i)
                    if (std::holds_alternative<lessons::Quiz>(*now.blocks[i]))
                        QVERIFY2(reading.blocks[i].state == lessons::Verdict::Pass,
                                 qPrintable(where + reading.blocks[i].text));
            }
            for (const lessons::Block* block : now.blocks)
                if (const auto* check = std::get_if<lessons::Check>(block);
                    check != nullptr && check->graded && session.lesson().solutionOf(check->id) != nullptr)
                    if (session.allows("settings")) QVERIFY(session.show(check->id)); // as it was
            QVERIFY(ready(window));
        }
        keepPicture(window, QStringLiteral("%1-%2-b").arg(id).arg(page + 1));
    }
    static QPushButton* shownButton(const QWidget& parent, const QRegularExpression& text)
    {
        for (QPushButton* button : parent.findChildren<QPushButton*>())
            if (button->isVisible() && text.match(button->text()).hasMatch()) return button;
        return nullptr;
    }
    // Presses the button that leads on, once nothing is missing.
    static void goOn(MainWindow& window, const QString& button)
    {
        LessonPanel& panel = *lessonsOf(window).panel();
        QVERIFY2(panel.nextReason().isEmpty(), qPrintable(panel.nextReason() + QLatin1Char('\n') + panel.plainText()));
        QPushButton* next = shownButton(panel, QRegularExpression(QStringLiteral("^(%1)$").arg(button)));
        QVERIFY2(next != nullptr && next->isEnabled(), qPrintable(button));
        press(next);
        QVERIFY(ready(window));
    }
    static void answerQuizzes(MainWindow& window)
    {
        LessonSession& session = *lessonsOf(window).session();
        LessonPanel& panel = *lessonsOf(window).panel();
        for (const lessons::Block* block : session.page().blocks)
            if (const auto* quiz = std::get_if<lessons::Quiz>(block)) {
                const lessons::Solution* solution = session.lesson().solutionOf(quiz->id);
                QVERIFY2(solution != nullptr && answer(panel, quiz->id, qs(solution->said.front().second)),
                         quiz->id.c_str());
                // While gradients are checked, the server may take a while to bring the click.
                QVERIFY2(QTest::qWaitFor([&] { return session.markOf(quiz->id) == lessons::Mark::Done; }, 10000),
                         qPrintable(qs(quiz->id) + QStringLiteral(": ") + panel.nextReason()));
                QVERIFY(ready(window));
            }
    }
    // The runs of a page, for real, and what is asked about them.
    static void prove(MainWindow& window)
    {
        LessonController& lessons = lessonsOf(window);
        QPushButton* run = shownButton(
            *lessons.panel(),
            QRegularExpression(QStringLiteral("^(Run all \\d+|Run it for real)( \\(about \\d+ (s|min)\\))?$")));
        QVERIFY(run != nullptr);
        press(run);
        const auto ran = [&] {
            const LessonSession& session = *lessons.session();
            const LessonPage page = session.page();
            const PageReading reading = readPage(session.lesson(), page, session.canvas(), session.learner(), false);
            for (std::size_t i = 0; i < page.blocks.size(); ++i)
                if (std::holds_alternative<lessons::RunBlock>(*page.blocks[i]) &&
                    reading.blocks[i].state == lessons::Verdict::Open)
                    return false;
            return lessons.runs()->running().isEmpty();
        };
        QVERIFY2(QTest::qWaitFor(ran, 300000), qPrintable(lessons.panel()->plainText()));
        QVERIFY(ready(window));
        answerQuizzes(window);
    }

private slots:
    void initTestCase() { QVERIFY2(WindowFixture::recordsWithBuiltProgram(), "the program stagewright is not built"); }
    void init()
    {
        m_fixture = std::make_unique<WindowFixture>();
        qputenv("XDG_DATA_HOME", m_fixture->dir.path().toUtf8());
    }

    void played_to_the_end_data()
    {
        QTest::addColumn<QString>("id");
        for (const lessons::Lesson& lesson : lessons::loadLibrary().lessons)
            QTest::newRow(lesson.id.c_str()) << qs(lesson.id);
    }
    void played_to_the_end()
    {
        if (onServer()) QSKIP("on a server all are played in one sitting");
        QFETCH(QString, id);
        MainWindow window;
        QVERIFY(WindowFixture::show(window, {1400, 900}));
        lessonsOf(window).start(id);
        QVERIFY(ready(window));
        LessonSession& session = *lessonsOf(window).session();
        const int pages = static_cast<int>(session.pages().size());
        for (int page = 0; page < pages; ++page) {
            QCOMPARE(session.pageIndex(), page);
            playPage(window);
            if (QTest::currentTestFailed()) return;
            if (page + 1 == pages) break;
            if (session.page().part == lessons::Part::Prove) { // its runs have a test of their own
                session.goTo(page + 1);
                QVERIFY(ready(window));
            } else {
                goOn(window, QStringLiteral("Next"));
                if (QTest::currentTestFailed()) return;
            }
        }
        QVERIFY(lessonsOf(window).panel()->plainText().contains(QStringLiteral("You learned")));
    }

    // From an empty home through the start page's door, the shelf and all lessons with their real runs, to the shelf
    // again: by the mouse and the keyboard of an X server.
    void all_in_one_sitting()
    {
        if (!onServer()) QSKIP(qPrintable(RealInput::missing()));
        MainWindow window;
        QVERIFY(WindowFixture::show(window, {1400, 900}));
        QVERIFY(ready(window));
        QPushButton* door = shownButton(window, QRegularExpression(QStringLiteral("^Lessons")));
        QVERIFY(door != nullptr);
        press(door);
        LessonController& lessons = lessonsOf(window);
        QTRY_VERIFY_WITH_TIMEOUT(lessons.shelf()->isVisible() && !lessons.shelf()->cards().empty(), 60000);
        QVERIFY(ready(window));
        const std::size_t count = lessons.shelf()->cards().size();
        press(lessons.shelf()->cards().front());
        for (std::size_t played = 0; played < count; ++played) {
            QTRY_VERIFY_WITH_TIMEOUT(lessons.session() != nullptr, 20000);
            QVERIFY(ready(window));
            LessonSession& session = *lessons.session();
            const QString id = qs(session.lesson().id);
            QCOMPARE(session.pageIndex(), 0);
            QElapsedTimer time;
            time.start();
            const int pages = static_cast<int>(session.pages().size());
            for (int page = 0; page + 1 < pages; ++page) {
                QCOMPARE(session.pageIndex(), page);
                playPage(window);
                if (!QTest::currentTestFailed() && session.page().part == lessons::Part::Prove) {
                    prove(window);
                    keepPicture(window, QStringLiteral("%1-%2-proven").arg(id).arg(page + 1));
                }
                if (!QTest::currentTestFailed()) goOn(window, QStringLiteral("Next"));
                if (QTest::currentTestFailed()) return;
            }
            QVERIFY(lessons.panel()->plainText().contains(QStringLiteral("You learned")));
            keepPicture(window, QStringLiteral("%1-%2-b").arg(id).arg(pages));
            qInfo().noquote() << id << time.elapsed() / 1000 << "s";
            goOn(window, QStringLiteral("Next lesson|To the lessons"));
            if (QTest::currentTestFailed()) return;
        }
        QVERIFY(lessons.shelf()->isVisible());
        keepPicture(window, QStringLiteral("shelf"));
        for (const LessonCard* card : lessons.shelf()->cards()) {
            const auto& entry = card->entry();
            // step times of a busy computer differ
            if (entry.mark != lessons::Mark::Proved)
                qInfo() << entry.lesson->id.c_str() << "is done; its run was disturbed";
            QVERIFY2(entry.mark >= lessons::Mark::Done, entry.lesson->id.c_str());
        }
    }

    // The order is kept in the lesson's progress: nothing is to be recovered after a crash, and the learner's own
    // gradients are proven.
    void the_own_order_is_kept_and_proven()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window, {1400, 900}));
        LessonController& lessons = lessonsOf(window);
        lessons.start(QStringLiteral("your-own"), true, 1);
        QVERIFY(ready(window));
        emit lessons.panel()->tools()->editAsked(QStringLiteral("swap 0F4 0B0"));
        QVERIFY(ready(window));
        QVERIFY(!window.workspace().feature<EditController>()->recovery().autosave()->pending());
        QVERIFY(QDir(EditAutosave::folder()).entryList({QStringLiteral("*.edit")}, QDir::Files).isEmpty());
        LessonSession& session = *lessons.session();
        int prove = 0;
        while (session.pages()[static_cast<std::size_t>(prove)].part != lessons::Part::Prove) ++prove;
        session.goTo(prove);
        QVERIFY(ready(window));
        const auto blocks = session.lesson().all<lessons::RunBlock>();
        QVERIFY(!blocks.empty());
        emit lessons.panel()->runAsked(qs(blocks.front()->id));
        QVERIFY2(!lessons.runs()->running().isEmpty(), qPrintable(window.workspace().banner()->text()));
        QTRY_VERIFY_WITH_TIMEOUT(!lessons.runs()->proof(qs(blocks.front()->id)).isEmpty(), 300000);
        const QString proof = lessons.runs()->proof(qs(blocks.front()->id));
        QVERIFY2(proof.contains(QStringLiteral("your order")), qPrintable(proof));
        QVERIFY2(proof.contains(QStringLiteral("bit for bit")), qPrintable(proof));
        QTRY_VERIFY_WITH_TIMEOUT(lessons.panel()->findChildren<QLabel*>().size() > 5, 1000);
    }

    // The runs of a lesson are its own: named for it, out of the user's list, files and session; the sheet is filled in
    // after them.
    void runs_are_the_lessons_own()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window, {1400, 900}));
        const QString own = m_fixture->file("mine.stagewright", {"gpipe"}, 2, 2);
        window.workspace().feature<FileOpening>()->openFiles({own});
        QVERIFY(ready(window));
        const auto before = window.workspace().runs()->refs();
        const RunRef shown = window.workspace().shown().ref();
        const QStringList recent = QSettings().value(QStringLiteral("files/recent")).toStringList();
        LessonController& lessons = lessonsOf(window);
        lessons.start(QStringLiteral("read-a-trace"), true);
        QVERIFY(ready(window));
        LessonPanel& panel = *lessons.panel();
        LessonSession& session = *lessons.session();
        int prove = 0;
        while (session.pages()[static_cast<std::size_t>(prove)].part != lessons::Part::Prove) ++prove;
        session.goTo(prove);
        QVERIFY(ready(window));
        QVERIFY2(!panel.plainText().contains(QStringLiteral("Sheet, patient")), "the sheet is for after the runs");
        QPushButton* all = shownButton(panel, QRegularExpression(QStringLiteral("^Run all 5$")));
        QVERIFY(all != nullptr);
        press(all);
        QTRY_VERIFY_WITH_TIMEOUT(session.learner().runs.size() == 5 && lessons.runs()->running().isEmpty(), 300000);
        QVERIFY(ready(window));
        std::set<std::string> names;
        for (const auto& [key, run] : session.learner().runs) names.insert(run->info.name);
        QCOMPARE(names,
                 (std::set<std::string>{"Lesson 15: The healthy run", "Lesson 15: Patient A", "Lesson 15: Patient B",
                                        "Lesson 15: Patient C", "Lesson 15: Patient D"}));
        for (const auto& [key, run] : session.learner().runs)
            for (const auto& [fact, value] : run->configuration)
                QVERIFY2(fact != "perturb" || value.starts_with("secret="), value.c_str());
        QVERIFY(!panel.plainText().contains(QStringLiteral("link=2-3")));
        answerQuizzes(window);
        if (QTest::currentTestFailed()) return;
        QVERIFY2(shownButton(panel, QRegularExpression(QStringLiteral("^Run all 5 \\(about \\d+ (s|min)\\)$"))) !=
                     nullptr,
                 "how long they take is known now");
        QVERIFY2(panel.plainText().contains(QStringLiteral("link=2-3")), "the sheet resolves the secret");
        QCOMPARE(panel.nextReason(), QString());
        QCOMPARE(QSettings().value(QStringLiteral("files/recent")).toStringList(), recent);
        window.workspace().actions()["leaveLesson"]->trigger();
        QVERIFY(ready(window));
        QVERIFY(window.workspace().runs()->refs() == before);
        QVERIFY(window.workspace().shown().ref() == shown);
    }
};

QTEST_MAIN(TestLessonPlay)
#include "tst_lesson_play.moc"
