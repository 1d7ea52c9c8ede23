// Edit mode in the window: selecting, dragging, refusals, patterns, text, tray, library, and recovery after a killed
// window.
#include <csignal>

#include <QDialog>
#include <QLabel>
#include <QListView>
#include <QPlainTextEdit>
#include <QProcess>
#include <QPushButton>
#include <QSpinBox>
#include <QTextBlock>

#include "app/ui/edit/edit_controller.h"
#include "app/ui/edit/recovery_bar.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "tests/ui/text_fit.h"
#include "tests/ui/window_fixture.h"
#include "widgets/edit/edit_overlay.h"
#include "widgets/edit/move_hint.h"
#include "widgets/edit/op_tray.h"
#include "widgets/edit/schedule_editor.h"
#include "widgets/edit/schedule_text.h"
#include "widgets/preferences/preferences.h"
#include "widgets/record/record_process.h"
#include "widgets/timeline/timeline_view.h"

using namespace stagewright;

namespace {

constexpr int longWait = 60000;

OpPosition find(const Schedule& schedule, const char* text)
{
    for (int r = 0; r < schedule.ranks; ++r)
        if (const OpPosition at = positionOf(schedule, *parseOp(text), r); at.valid()) return at;
    return {};
}

SpanRef spanOf(MainWindow& window, const char* text)
{
    return {0, window.workspace().feature<OrderEditing>()->editor().spanAt(
                   find(window.workspace().feature<OrderEditing>()->editor().schedule(), text))};
}

bool edit(WindowFixture& fixture, MainWindow& window, const char* schedule)
{
    window.workspace().feature<FileOpening>()->openFiles({fixture.file("runs.stagewright", {schedule})});
    if (!WindowFixture::show(window) || !WindowFixture::settle(window)) return false;
    window.workspace().feature<OrderEditing>()->enterEdit();
    return window.workspace().shown().mode() == Shown::Mode::Edit && WindowFixture::settle(window);
}

void trigger(MainWindow& window, ActionId id)
{
    window.workspace().feature<EditController>()->refreshActions();
    QVERIFY2(window.workspace().actions()[id]->isEnabled(), qPrintable(window.workspace().actions()[id]->objectName()));
    window.workspace().actions()[id]->trigger();
}

} // namespace

class TestEditing : public QObject {
    Q_OBJECT

private slots:
    void severalOpsAreChosenAndMovedTogether()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(edit(fixture, window, "gpipe"));
        TimelineView* view = window.workspace().views().timeline;
        const Schedule before = window.workspace().feature<OrderEditing>()->editor().schedule();
        QTest::mouseClick(view, Qt::LeftButton, {}, WindowFixture::centre(window, spanOf(window, "0F0")));
        QTest::mouseClick(view, Qt::LeftButton, Qt::ControlModifier,
                          WindowFixture::centre(window, spanOf(window, "0F2")));
        QCOMPARE(window.workspace().feature<EditController>()->selection().ops().size(), std::size_t{2});
        QCOMPARE(window.findChild<EditOverlay*>()->chosen().size(), std::size_t{2});
        QTest::keyClick(view, Qt::Key_Right, Qt::ControlModifier);
        QCOMPARE(window.workspace().feature<OrderEditing>()->editor().schedule().order[0],
                 moveOps(before, {{0, 0}, {0, 2}}, 1)->schedule.order[0]);
        QCOMPARE(window.workspace().feature<EditController>()->selection().ops().size(),
                 std::size_t{2}); // still the same ops
        window.workspace().feature<OrderEditing>()->editor().undoStack()->undo();
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().schedule() == before);
        // People count from one: the op at place 4 is the fifth.
        window.workspace().feature<EditController>()->selection().choose({{0, 4}});
        const EditPanel* panel = window.workspace().feature<EditController>()->panel();
        QTRY_VERIFY2(panel->plainText().contains(QStringLiteral("rank 0, op 5 of 16")), qPrintable(panel->plainText()));
        // An area selects what it covers; Ctrl+click deselects one op.
        QTest::mouseClick(view, Qt::LeftButton, {}, WindowFixture::centre(window, spanOf(window, "0F0")));
        QTest::keyClick(view, Qt::Key_Right, Qt::ShiftModifier);
        QTest::keyClick(view, Qt::Key_Right, Qt::ShiftModifier);
        QCOMPARE(window.workspace().feature<EditController>()->selection().ops().size(), std::size_t{3});
        const auto from = view->rectOf(spanOf(window, "2F1")), to = view->rectOf(spanOf(window, "3F3"));
        WindowFixture::drag(view, QPoint(static_cast<int>(from->left()) + 2, static_cast<int>(from->top()) - 3),
                            QPoint(static_cast<int>(to->right()) - 2, static_cast<int>(to->bottom()) + 1));
        QVERIFY(window.workspace().feature<EditController>()->selection().ops().size() >= 4);
    }

    void aWrongMoveIsExplainedAndGoesToTheNearestPlace()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(edit(fixture, window, "1f1b"));
        TimelineView* view = window.workspace().views().timeline;
        const QPoint from = WindowFixture::centre(window, spanOf(window, "0B1")),
                     first = WindowFixture::centre(window, spanOf(window, "0F0"));
        WindowFixture::drag(view, from, QPoint(first.x() - 20, first.y()));
        QVERIFY(!window.workspace().feature<OrderEditing>()->editor().valid());
        QTRY_VERIFY_WITH_TIMEOUT(window.workspace().feature<EditController>()->drag().hint()->isVisible(), longWait);
        QVERIFY2(window.workspace().feature<EditController>()->drag().hint()->text().contains(
                     QStringLiteral("0B1 can't go there: it needs 1B1 of rank 1")),
                 qPrintable(window.workspace().feature<EditController>()->drag().hint()->text()));
        QVERIFY(window.workspace().feature<EditController>()->drag().hint()->text().contains(
            QStringLiteral("Earliest place: after")));
        QTest::keyClick(view, Qt::Key_Period, Qt::ControlModifier);
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().valid());
        QVERIFY(!window.workspace().feature<EditController>()->drag().hint()->isVisible());
        window.workspace().feature<OrderEditing>()->editor().undoStack()->undo();
        window.workspace().feature<OrderEditing>()->editor().undoStack()->undo();
        QVERIFY(!window.workspace().feature<OrderEditing>()->editor().changed());
        // Refusing: it moves back, and the reason is still shown.
        window.workspace().actions()["strictMoves"]->setChecked(true);
        WindowFixture::drag(view, from, QPoint(first.x() - 20, first.y()));
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().valid());
        QVERIFY(!window.workspace().feature<OrderEditing>()->editor().changed());
        QTRY_VERIFY_WITH_TIMEOUT(window.workspace().feature<EditController>()->drag().hint()->isVisible(), longWait);
        window.workspace().actions()["strictMoves"]->setChecked(false);
        // Carried along: its dependants follow.
        window.workspace().actions()["carryAlong"]->setChecked(true);
        const QPoint f = WindowFixture::centre(window, spanOf(window, "0F4")),
                     later = WindowFixture::centre(window, spanOf(window, "0B5"));
        WindowFixture::drag(view, f, QPoint(later.x() + 10, later.y()));
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().changed());
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().valid());
        window.workspace().actions()["carryAlong"]->setChecked(false);
    }

    // On a small screen the reason, while the op is dragged, the card with its buttons and the mark in the text are whole.
    void aWrongMoveIsExplainedOnASmallScreen()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(edit(fixture, window, "1f1b"));
        window.resize(1024, 700);
        QVERIFY(WindowFixture::settle(window));
        TimelineView* view = window.workspace().views().timeline;
        const QPoint from = WindowFixture::centre(window, spanOf(window, "0B7")),
                     to = WindowFixture::centre(window, spanOf(window, "0F6")); // so far right that it has no room
        QTest::mousePress(view, Qt::LeftButton, {}, from);
        for (int i = 1; i <= 8; ++i) QTest::mouseMove(view, from + (to - from) * i / 8);
        const QColor fault = window.workspace().theme().critical;
        const auto column = [&](int fromRight) { // of pixels of the reason's box
            const QImage image = view->grab().toImage();
            int count = 0;
            for (int y = 0; y < image.height(); ++y)
                count += image.pixelColor(image.width() - fromRight, y) == fault ? 1 : 0;
            return count;
        };
        QTRY_VERIFY(column(40) > 20);
        QVERIFY2(column(1) == 0, qPrintable(QString::number(column(1)))); // it ends before the view
        QTest::mouseRelease(view, Qt::LeftButton, {}, to);
        const MoveHint* hint = window.workspace().feature<EditController>()->drag().hint();
        QTRY_VERIFY_WITH_TIMEOUT(hint->isVisible(), longWait);
        QTRY_COMPARE(clipped(const_cast<MoveHint*>(hint)).join(QLatin1Char('\n')), QString());
        QVERIFY(view->rect().contains(hint->geometry()));
        for (const QLabel* label : window.findChildren<QLabel*>())
            if (label->isVisible() && label->text().startsWith(QStringLiteral("deadlock")))
                QVERIFY2(label->height() >= label->heightForWidth(label->width()), qPrintable(label->text()));
    }

    void theDragShowsThePictureItWouldGive()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(edit(fixture, window, "zb-h1"));
        TimelineView* view = window.workspace().views().timeline;
        const QPoint from = WindowFixture::centre(window, spanOf(window, "0W0")),
                     to = WindowFixture::centre(window, spanOf(window, "0W5"));
        QTest::mousePress(view, Qt::LeftButton, {}, from);
        for (int i = 1; i <= 4; ++i) {
            const QPoint at = from + (to - from) * i / 4;
            QMouseEvent move(QEvent::MouseMove, at, view->mapToGlobal(at), Qt::NoButton, Qt::LeftButton,
                             Qt::NoModifier);
            QCoreApplication::sendEvent(view, &move);
        }
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().previewing());
        QVERIFY(view->scene().preview != nullptr);
        QVERIFY(window.findChild<EditOverlay*>()->ghost() != nullptr); // the order before
        QCOMPARE(view->scene().preview->duration,
                 window.workspace().feature<OrderEditing>()->editor().figures().makespan);
        // Green is a shorter step alone; here it is longer, and holds more.
        const auto* badge = view->findChild<QLabel*>(QStringLiteral("dragLabel"));
        QVERIFY(badge != nullptr && badge->isVisible());
        QVERIFY2(badge->text().startsWith(u'+') && badge->text().contains(QStringLiteral("peak of rank 0 +")),
                 qPrintable(badge->text()));
        QVERIFY(!badge->styleSheet().contains(window.workspace().theme().better.name()));
        const Schedule shown = window.workspace().feature<OrderEditing>()->editor().shown();
        QTest::mouseRelease(view, Qt::LeftButton, {}, to);
        QVERIFY(view->scene().preview == nullptr);
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().schedule() == shown);
        QVERIFY(window.findChild<EditOverlay*>()->ghost() == nullptr);
        // Esc: as before.
        QTest::mousePress(view, Qt::LeftButton, {}, WindowFixture::centre(window, spanOf(window, "1W0")));
        const QPoint away = WindowFixture::centre(window, spanOf(window, "1W5"));
        QMouseEvent move(QEvent::MouseMove, away, view->mapToGlobal(away), Qt::NoButton, Qt::LeftButton,
                         Qt::NoModifier);
        QCoreApplication::sendEvent(view, &move);
        QTest::keyClick(view, Qt::Key_Escape);
        QVERIFY(!window.workspace().feature<OrderEditing>()->editor().previewing());
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().schedule() == shown);
        QTest::mouseRelease(view, Qt::LeftButton, {}, away);
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().schedule() == shown);
    }

    void ranksAreChangedWhereThePlacementAllows()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(edit(fixture, window, "chimera"));
        const OpPosition at = find(window.workspace().feature<OrderEditing>()->editor().schedule(), "1F0");
        window.workspace().feature<EditController>()->selection().choose({at});
        const auto copies = window.workspace().feature<OrderEditing>()->editor().schedule().placement.copiesOf(1);
        const int other = copies[0].rank == at.rank ? copies[1].rank : copies[0].rank;
        trigger(window, other > at.rank ? "rankBelow" : "rankAbove");
        QCOMPARE(window.workspace().feature<OrderEditing>()->editor().schedule().placement.rankOf(1, 0), other);
        QCOMPARE(window.workspace().feature<EditController>()->selection().ops().front().rank, other);
        window.workspace().feature<OrderEditing>()->leaveEdit();

        WindowFixture elsewhere;
        MainWindow plain;
        QVERIFY(edit(elsewhere, plain, "1f1b"));
        plain.workspace().feature<EditController>()->selection().choose(
            {find(plain.workspace().feature<OrderEditing>()->editor().schedule(), "1F0")});
        trigger(plain, "rankBelow");
        QVERIFY(!plain.workspace().feature<OrderEditing>()->editor().changed());
        QVERIFY2(plain.workspace().feature<EditController>()->drag().hint()->text().contains(
                     QStringLiteral("the weights of stage 1 are on rank 1 alone")),
                 qPrintable(plain.workspace().feature<EditController>()->drag().hint()->text()));
    }

    void patternsAreStampedAlongMicrobatches()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(edit(fixture, window, "1f1b"));
        const Schedule before = window.workspace().feature<OrderEditing>()->editor().schedule();
        window.workspace().views().timeline->setFocus();
        window.workspace().feature<EditController>()->selection().choose({find(before, "0F3")});
        trigger(window, "chooseMicrobatch");
        QCOMPARE(window.workspace().feature<EditController>()->selection().ops().size(), std::size_t{8});
        trigger(window, "cutOps");
        QCOMPARE(window.workspace().feature<OrderEditing>()->editor().unplaced().size(), std::size_t{8});
        QVERIFY(window.workspace().feature<EditController>()->deck().tray()->isVisible());
        trigger(window, "pasteOps");
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().complete());
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().valid());
        QVERIFY(!window.workspace().feature<EditController>()->deck().tray()->isVisible());
        trigger(window, "pasteOps"); // of microbatch 4, one period later: at its place, or near it
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().complete());
        while (window.workspace().feature<OrderEditing>()->editor().undoStack()->canUndo())
            window.workspace().feature<OrderEditing>()->editor().undoStack()->undo();
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().schedule() == before);
    }

    void splitFillSwapSnapAndMicrobatches()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(edit(fixture, window, "1f1b"));
        const Schedule before = window.workspace().feature<OrderEditing>()->editor().schedule();
        window.workspace().feature<EditController>()->selection().choose(allPositions(before));
        trigger(window, "splitBackward");
        QCOMPARE(window.workspace().feature<OrderEditing>()->editor().undoStack()->undoText(),
                 QStringLiteral("Split 32 backwards"));
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().schedule().splitsBackward());
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().valid());
        // Every W to the end of rank 0, then into the gaps one after another.
        trigger(window, "snapAll");
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().valid());
        window.workspace().feature<EditController>()->selection().choose(
            allPositions(window.workspace().feature<OrderEditing>()->editor().schedule()));
        trigger(window, "mergeBackward");
        QVERIFY(!window.workspace().feature<OrderEditing>()->editor().schedule().splitsBackward());
        while (window.workspace().feature<OrderEditing>()->editor().undoStack()->canUndo())
            window.workspace().feature<OrderEditing>()->editor().undoStack()->undo();
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().schedule() == before);
        window.workspace().feature<EditController>()->selection().choose({{0, 0}, {0, 1}});
        trigger(window, "swapOps");
        QCOMPARE(window.workspace().feature<OrderEditing>()->editor().schedule().order[0][0], before.order[0][1]);
        window.workspace().feature<OrderEditing>()->editor().undoStack()->undo();
        window.workspace().feature<EditController>()->selection().choose({{1, 2}});
        trigger(window, "insertRecompute");
        QCOMPARE(window.workspace().feature<OrderEditing>()->editor().schedule().opCount(), before.opCount() + 1);
        window.workspace().feature<OrderEditing>()->editor().undoStack()->undo();
        QVERIFY(window.workspace().feature<EditController>()->commands().changeMicrobatches(12));
        QCOMPARE(window.workspace().feature<OrderEditing>()->editor().schedule().microbatches, 12);
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().valid());
        QTRY_VERIFY_WITH_TIMEOUT(
            window.workspace().settled() &&
                window.workspace().feature<EditController>()->panel()->recognised().contains(QStringLiteral("1F1B")),
            longWait);
    }

    void textAndCanvasAreInStep()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(edit(fixture, window, "1f1b"));
        ScheduleText* text = window.workspace().feature<EditController>()->deck().text();
        QVERIFY(text->isVisible());
        const Schedule before = window.workspace().feature<OrderEditing>()->editor().schedule();
        QCOMPARE(text->field()->toPlainText(), textLinesOf(before)->join(QLatin1Char('\n')));
        // The canvas moves an op: the text follows; the caret is in the selected op.
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().nudge(find(before, "0F1"), 1));
        QCOMPARE(text->field()->toPlainText(),
                 textLinesOf(window.workspace().feature<OrderEditing>()->editor().schedule())->join(QLatin1Char('\n')));
        window.workspace().feature<EditController>()->selection().choose({{2, 3}});
        QCOMPARE(text->field()->textCursor().blockNumber(), 2);
        // Typed: two ops of rank 3 swap places; both views show the fault.
        text->field()->setFocus();
        QString typed = text->field()->toPlainText();
        typed.replace(QStringLiteral("3F0,3B0"), QStringLiteral("3B0,3F0"));
        text->field()->selectAll();
        text->field()->insertPlainText(typed);
        QTRY_VERIFY_WITH_TIMEOUT(text->settled() && !window.workspace().feature<OrderEditing>()->editor().valid(),
                                 longWait);
        QCOMPARE(text->fault().line, 3);
        QVERIFY(!window.findChild<EditOverlay*>()->faults().empty());
        QCOMPARE(text->field()->toPlainText(), typed);
        QTest::keyClick(text->field(), Qt::Key_Z, Qt::ControlModifier);
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().valid());
        // The caret selects the op.
        QTextCursor cursor = text->field()->textCursor();
        cursor.setPosition(text->field()->document()->findBlockByNumber(1).position() + 1);
        text->field()->setTextCursor(cursor);
        QCOMPARE(window.workspace().feature<EditController>()->selection().ops(), (std::vector<OpPosition>{{1, 0}}));
    }

    void opsAreDraggedOutOfTheTray()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(edit(fixture, window, "1f1b"));
        ScheduleEditor& editor = window.workspace().feature<OrderEditing>()->editor();
        const Schedule before = editor.schedule();
        const OpPosition at = find(before, "0F3");
        window.workspace().views().timeline->setFocus();
        window.workspace().feature<EditController>()->selection().choose({at});
        trigger(window, "cutOps");
        QVERIFY(WindowFixture::settle(window));
        OpTray* tray = window.workspace().feature<EditController>()->deck().tray();
        QCOMPARE(tray->count(), 1);
        // Figures of an order with ops missing are not held against a whole one's.
        for (const QLabel* label : window.findChildren<QLabel*>())
            QVERIFY2(!label->isVisible() || !label->text().startsWith(QStringLiteral("against ")),
                     qPrintable(label->text()));

        TimelineView* view = window.workspace().views().timeline;
        QWidget* list = tray->list()->viewport();
        const QPoint chip = tray->list()->visualRect(tray->list()->model()->index(0, 0)).center();
        // In front of the op that followed it on rank 0.
        const auto follower = view->rectOf({0, editor.spanAt(at)});
        QVERIFY(follower.has_value());
        const auto there = [&](QPointF inView) { return list->mapFromGlobal(view->mapToGlobal(inView).toPoint()); };
        const auto drag = [&](QPointF inView) {
            QTest::mousePress(list, Qt::LeftButton, {}, chip);
            QTest::mouseMove(list, chip + QPoint(30, -30));
            QTest::mouseMove(list, there(inView));
        };
        const QPointF wrong(follower->center().x(), view->scene().rowRect(0, 1)->center().y());
        const QPointF right(follower->left() + 1, follower->center().y());
        drag(wrong);
        auto* label = view->findChild<QLabel*>(QStringLiteral("dragLabel"));
        QVERIFY(label != nullptr && label->isVisible());
        QCOMPARE(label->text(), QStringLiteral("0F3 belongs to stage 0, which is on rank 0"));
        QTest::mouseRelease(list, Qt::LeftButton, {}, there(wrong));
        QCOMPARE(tray->count(), 1);
        QVERIFY(!label->isVisible());
        drag(right);
        QVERIFY(editor.previewing());
        QCOMPARE(label->text(), QStringLiteral("Place 0F3 here"));
        QTest::keyClick(tray->list(), Qt::Key_Escape);
        QVERIFY(!editor.previewing());
        QTest::mouseRelease(list, Qt::LeftButton, {}, there(right));
        QCOMPARE(tray->count(), 1);
        drag(right);
        QTest::mouseRelease(list, Qt::LeftButton, {}, there(right));
        QVERIFY(editor.complete());
        QVERIFY(editor.schedule() == before);
        QCOMPARE(editor.undoStack()->undoText(), QStringLiteral("Place 0F3"));
    }

    void anEmptyCanvasIsFilledFromTheTray()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.workspace().actions()["newEmpty"]->trigger();
        auto* dialog = window.findChild<QDialog*>(QStringLiteral("newEmpty"));
        QVERIFY(dialog != nullptr);
        dialog->findChildren<QSpinBox*>().at(2)->setValue(1);
        QTest::keyClick(dialog, Qt::Key_Return);
        QTRY_VERIFY_WITH_TIMEOUT(
            window.workspace().shown().mode() == Shown::Mode::Edit && WindowFixture::settle(window), longWait);
        QCOMPARE(window.workspace().feature<OrderEditing>()->editor().schedule().opCount(), std::size_t{0});
        OpTray* tray = window.workspace().feature<EditController>()->deck().tray();
        QCOMPARE(tray->count(), 4);
        for (int i = 0; i < 4; ++i) { // the ready one is first
            tray->list()->setFocus();
            QTest::keyClick(tray->list(), Qt::Key_Return);
        }
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().complete());
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().valid());
        QCOMPARE(window.workspace().feature<OrderEditing>()->editor().figures().makespan, 6 * rankShare);
        QVERIFY(window.workspace().feature<EditController>()->commands().changeMicrobatches(2));
        QVERIFY(tray->isVisible());
        window.workspace().feature<EditController>()->refreshActions();
        emit tray->placeAllAsked();
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().complete() &&
                window.workspace().feature<OrderEditing>()->editor().valid());
        QCOMPARE(window.workspace().feature<OrderEditing>()->editor().figures().makespan, 9 * rankShare);
        window.workspace().feature<OrderEditing>()->editor().undoStack()->setIndex(0);
        QCOMPARE(window.workspace().feature<OrderEditing>()->editor().schedule().opCount(), std::size_t{0});
    }

    void aFileThatLacksOpsIsEdited()
    {
        WindowFixture fixture;
        const QString path = fixture.dir.filePath(QStringLiteral("half.csv"));
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write("0F0,0F1,0B0,0B1\n1F0,1B0,1B1\n"); // 1F1 is missing
        file.close();
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.workspace().feature<FileOpening>()->openFiles({path});
        QTRY_VERIFY_WITH_TIMEOUT(
            window.workspace().shown().mode() == Shown::Mode::Edit && WindowFixture::settle(window), longWait);
        QCOMPARE(window.workspace().feature<OrderEditing>()->editor().unplaced(), std::vector<Op>{*parseOp("1F1")});
        emit window.workspace().feature<EditController>()->deck().tray()->placeAllAsked();
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().complete() &&
                window.workspace().feature<OrderEditing>()->editor().valid());
    }

    void theLibraryIsComparedWith()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(edit(fixture, window, "1f1b"));
        window.workspace().feature<EditController>()->compareWith(QStringLiteral("zb-h1"));
        QTRY_VERIFY_WITH_TIMEOUT(window.workspace().settled(), longWait);
        QVERIFY2(window.workspace().feature<EditController>()->panel()->plainText().contains(
                     QStringLiteral("against ZB-H1")),
                 qPrintable(window.workspace().feature<EditController>()->panel()->plainText()));
        QVERIFY(window.findChild<EditOverlay*>()->ghost() != nullptr);
        window.workspace().feature<EditController>()->compareWith(QStringLiteral("chimera:f=9"));
        QTRY_VERIFY_WITH_TIMEOUT(window.workspace().settled(), longWait);
        QVERIFY(!window.workspace().feature<EditController>()->panel()->plainText().contains(
            QStringLiteral("against ZB-H1")));
        window.workspace().feature<EditController>()->compareWith({});
        QVERIFY(window.findChild<EditOverlay*>()->ghost() == nullptr);
        QVERIFY(window.workspace().feature<EditController>()->panel()->recognised().contains(QStringLiteral("1F1B")));
    }

    void whatIsLeftStaysInTheList()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(edit(fixture, window, "zb-h1"));
        const std::size_t runs = window.workspace().runs()->refs().size();
        trigger(window, "snapAll");
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().changed());
        window.workspace().feature<OrderEditing>()->leaveEdit();
        QTRY_COMPARE_WITH_TIMEOUT(window.workspace().runs()->refs().size(), runs + 1, longWait);
        // With a fault it can't be a run: editing the same run again restores it.
        window.workspace().feature<OrderEditing>()->enterEdit();
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().move(
            find(window.workspace().feature<OrderEditing>()->editor().schedule(), "0I1"), 0));
        QVERIFY(!window.workspace().feature<OrderEditing>()->editor().valid());
        const Schedule left = window.workspace().feature<OrderEditing>()->editor().schedule();
        window.workspace().feature<OrderEditing>()->leaveEdit();
        window.workspace().feature<OrderEditing>()->enterEdit();
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().schedule() == left);
        window.workspace().feature<OrderEditing>()->editor().undoStack()->undo();
        QVERIFY(!window.workspace().feature<OrderEditing>()->editor().changed());
        window.workspace().feature<OrderEditing>()->leaveEdit();
    }

    // Running an order keeps it only if the recording starts and has steps.
    void anOrderThatCouldNotBeRecordedIsKept()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(edit(fixture, window, "zb-h1"));
        trigger(window, "snapAll");
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().changed() &&
                window.workspace().feature<OrderEditing>()->editor().valid());
        const QByteArray program = qgetenv("STAGEWRIGHT_PROGRAM");
        qputenv("STAGEWRIGHT_PROGRAM", "/nonexistent");
        trigger(window, "runEdited");
        qputenv("STAGEWRIGHT_PROGRAM", program);
        if (program.isEmpty()) qunsetenv("STAGEWRIGHT_PROGRAM");
        QVERIFY(!window.workspace().feature<Recording>()->process()->running());
        QVERIFY2(window.workspace().banner()->text().contains(QStringLiteral("was not found")),
                 qPrintable(window.workspace().banner()->text()));
        QTRY_VERIFY_WITH_TIMEOUT(
            window.workspace().feature<EditController>()->recovery().autosave()->written() &&
                QFileInfo::exists(window.workspace().feature<EditController>()->recovery().autosave()->file()),
            longWait);
        const std::size_t runs = window.workspace().runs()->refs().size();
        window.workspace().feature<OrderEditing>()->leaveEdit();
        QTRY_COMPARE_WITH_TIMEOUT(window.workspace().runs()->refs().size(), runs + 1, longWait);
    }

    // A window killed while editing: the next one offers the order, and two windows never share a file.
    void aKilledWindowIsRecovered()
    {
        WindowFixture fixture;
        const QString file = fixture.file("runs.stagewright", {"1f1b"});
        QProcess child;
        child.setProcessChannelMode(QProcess::ForwardedErrorChannel);
        child.start(QCoreApplication::applicationFilePath(),
                    {QStringLiteral("--edit-until-killed"), fixture.dir.path(), file});
        QVERIFY(child.waitForStarted(longWait));
        QByteArray said;
        QVERIFY(QTest::qWaitFor(
            [&] { return child.waitForReadyRead(50), said += child.readAllStandardOutput(), said.contains("\n"); },
            longWait * 2));
        const Schedule original = *makeSchedule("1f1b", Shape{4, 8, 0});
        { // it is still open: its file is its own
            MainWindow second;
            QVERIFY(second.workspace().feature<EditController>()->recovery().bar() == nullptr);
        }
        ::kill(static_cast<pid_t>(child.processId()), SIGKILL);
        QVERIFY(child.waitForFinished(longWait));
        QCOMPARE(child.exitStatus(), QProcess::CrashExit);

        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        QVERIFY(window.workspace().feature<EditController>()->recovery().bar() != nullptr);
        QVERIFY2(window.workspace().feature<EditController>()->recovery().bar()->text().contains(
                     QStringLiteral("runs.stagewright")) &&
                     window.workspace().feature<EditController>()->recovery().bar()->text().contains(
                         QStringLiteral("2 changes")),
                 qPrintable(window.workspace().feature<EditController>()->recovery().bar()->text()));
        { // offered once
            MainWindow third;
            QVERIFY(third.workspace().feature<EditController>()->recovery().bar() == nullptr);
        }
        for (QPushButton* button :
             window.workspace().feature<EditController>()->recovery().bar()->findChildren<QPushButton*>())
            if (button->text().contains(QStringLiteral("Recover"))) QTest::mouseClick(button, Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(
            window.workspace().shown().mode() == Shown::Mode::Edit && WindowFixture::settle(window), longWait);
        Schedule wanted = moveOps(original, {{0, 1}}, 1)->schedule;
        wanted = splitBackward(wanted, allPositions(wanted, 2))->schedule;
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().schedule().order == wanted.order);
        // in its recording, so that its result is stored there
        QCOMPARE(window.workspace().shown().ref(), (RunRef{file, 1}));
        QCOMPARE(window.workspace().runs()->refs().size(), std::size_t(1));
        window.workspace().feature<OrderEditing>()->editor().undoStack()->undo();
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().schedule().order == original.order);
        window.workspace().feature<OrderEditing>()->editor().undoStack()->redo();
        QTRY_VERIFY_WITH_TIMEOUT(window.workspace().feature<EditController>()->recovery().autosave()->written(),
                                 longWait);
        QVERIFY(QFileInfo::exists(window.workspace().feature<EditController>()->recovery().autosave()->file()));
        // Switched off, nothing more is saved; switched on or set more frequent during an edit, changes made meanwhile
        // are saved.
        const Preferences before = PreferenceStore::instance().value();
        Preferences other = before;
        other.autosave = false;
        PreferenceStore::instance().set(other);
        const auto keptNow = [&] {
            QFile kept(window.workspace().feature<EditController>()->recovery().autosave()->file());
            if (!kept.open(QIODevice::ReadOnly)) return false;
            const QByteArray bytes = kept.readAll();
            const auto record =
                readEditRecord(std::string_view(bytes.constData(), static_cast<std::size_t>(bytes.size())));
            return record && record->edited == window.workspace().feature<OrderEditing>()->editor().schedule();
        };
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().apply(
            tr("move"), moveOps(window.workspace().feature<OrderEditing>()->editor().schedule(), {{1, 1}}, 1)));
        QVERIFY(WindowFixture::settle(window));
        QVERIFY(!window.workspace().feature<EditController>()->recovery().autosave()->pending() && !keptNow());
        other.autosave = true;
        other.autosaveSeconds = 600;
        PreferenceStore::instance().set(other);
        QVERIFY(WindowFixture::settle(window));
        QVERIFY(window.workspace().feature<EditController>()->recovery().autosave()->pending() && !keptNow());
        PreferenceStore::instance().set(before); // due in ten minutes, now in a second
        QTRY_VERIFY_WITH_TIMEOUT(keptNow(), longWait);
        // After leaving, nothing stays behind.
        window.workspace().feature<OrderEditing>()->leaveEdit();
        // once it is written
        QTRY_VERIFY_WITH_TIMEOUT(
            !QFileInfo::exists(window.workspace().feature<EditController>()->recovery().autosave()->file()), longWait);
        MainWindow last;
        QVERIFY(last.workspace().feature<EditController>()->recovery().bar() == nullptr);
    }
};

// The other process of the test: edits until it is killed.
static int editUntilKilled(int argc, char** argv)
{
    QApplication app(argc, argv);
    QApplication::setApplicationName(QStringLiteral("tst_editing"));
    QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, QString::fromLocal8Bit(argv[2]));
    MainWindow window;
    window.workspace().feature<FileOpening>()->openFiles({QString::fromLocal8Bit(argv[3])});
    if (!WindowFixture::show(window) || !WindowFixture::settle(window)) return 1;
    window.workspace().feature<OrderEditing>()->enterEdit();
    if (!window.workspace().feature<OrderEditing>()->editor().move({0, 1}, 2)) return 2;
    if (!window.workspace().feature<OrderEditing>()->editor().apply(
            QStringLiteral("Split"),
            splitBackward(window.workspace().feature<OrderEditing>()->editor().schedule(),
                          allPositions(window.workspace().feature<OrderEditing>()->editor().schedule(), 2))))
        return 3;
    if (!QTest::qWaitFor([&] { return window.workspace().feature<EditController>()->recovery().autosave()->written(); },
                         longWait))
        return 4;
    std::puts("written");
    std::fflush(stdout);
    return QApplication::exec();
}

int main(int argc, char** argv)
{
    if (argc == 4 && std::string_view(argv[1]) == "--edit-until-killed") return editUntilKilled(argc, argv);
    QApplication app(argc, argv);
    QApplication::setApplicationName(QStringLiteral("tst_editing"));
    TestEditing test;
    return QTest::qExec(&test, argc, argv);
}
#include "tst_editing.moc"
