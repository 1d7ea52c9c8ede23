// Edit mode in the window: selecting, dragging, refusals, patterns, text, tray, library, and recovery after a killed window.
#include <csignal>

#include <QDialog>
#include <QListView>
#include <QPlainTextEdit>
#include <QProcess>
#include <QPushButton>
#include <QSpinBox>
#include <QTextBlock>

#include "app/ui/edit/edit_controller.h"
#include "app/ui/shell/recovery_bar.h"
#include "tests/ui/window_fixture.h"
#include "widgets/edit/edit_overlay.h"
#include "widgets/edit/move_hint.h"
#include "widgets/edit/op_tray.h"
#include "widgets/edit/schedule_text.h"

using namespace stagewright;

namespace {

constexpr int longWait = 60000;

OpPosition find(const Schedule& schedule, const char* text)
{
    for (int r = 0; r < schedule.ranks; ++r)
        if (const OpPosition at = positionOf(schedule, *parseOp(text), r); at.valid()) return at;
    return {};
}

SpanRef spanOf(MainWindow& window, const char* text) { return {0, window.editor()->spanAt(find(window.editor()->schedule(), text))}; }

bool edit(WindowFixture& fixture, MainWindow& window, const char* schedule)
{
    window.openFiles({fixture.file("runs.stagewright", {schedule})});
    if (!WindowFixture::show(window) || !WindowFixture::settle(window)) return false;
    window.enterEdit();
    return window.mode() == MainWindow::Mode::Edit && WindowFixture::settle(window);
}

void trigger(MainWindow& window, ActionId id)
{
    window.edit()->refreshActions();
    QVERIFY2(window.actions()[id]->isEnabled(), qPrintable(window.actions()[id]->objectName()));
    window.actions()[id]->trigger();
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
        TimelineView* view = window.timelineView();
        const Schedule before = window.editor()->schedule();
        QTest::mouseClick(view, Qt::LeftButton, {}, WindowFixture::centre(window, spanOf(window, "0F0")));
        QTest::mouseClick(view, Qt::LeftButton, Qt::ControlModifier, WindowFixture::centre(window, spanOf(window, "0F2")));
        QCOMPARE(window.edit()->chosen().size(), std::size_t{2});
        QCOMPARE(window.findChild<EditOverlay*>()->chosen().size(), std::size_t{2});
        QTest::keyClick(view, Qt::Key_Right, Qt::ControlModifier);
        QCOMPARE(window.editor()->schedule().order[0], moveOps(before, {{0, 0}, {0, 2}}, 1)->schedule.order[0]);
        QCOMPARE(window.edit()->chosen().size(), std::size_t{2}); // still the same ops
        window.editor()->undoStack()->undo();
        QVERIFY(window.editor()->schedule() == before);
        // An area selects what it covers; Ctrl+click deselects one op.
        QTest::mouseClick(view, Qt::LeftButton, {}, WindowFixture::centre(window, spanOf(window, "0F0")));
        QTest::keyClick(view, Qt::Key_Right, Qt::ShiftModifier);
        QTest::keyClick(view, Qt::Key_Right, Qt::ShiftModifier);
        QCOMPARE(window.edit()->chosen().size(), std::size_t{3});
        const auto from = view->rectOf(spanOf(window, "2F1")), to = view->rectOf(spanOf(window, "3F3"));
        WindowFixture::drag(view, QPoint(static_cast<int>(from->left()) + 2, static_cast<int>(from->top()) - 3), QPoint(static_cast<int>(to->right()) - 2, static_cast<int>(to->bottom()) + 1));
        QVERIFY(window.edit()->chosen().size() >= 4);
    }

    void aWrongMoveIsExplainedAndGoesToTheNearestPlace()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(edit(fixture, window, "1f1b"));
        TimelineView* view = window.timelineView();
        const QPoint from = WindowFixture::centre(window, spanOf(window, "0B1")), first = WindowFixture::centre(window, spanOf(window, "0F0"));
        WindowFixture::drag(view, from, QPoint(first.x() - 20, first.y()));
        QVERIFY(!window.editor()->valid());
        QTRY_VERIFY_WITH_TIMEOUT(window.edit()->hint()->isVisible(), longWait);
        QVERIFY2(window.edit()->hint()->text().contains(QStringLiteral("0B1 can't go there: it needs 1B1 of rank 1")), qPrintable(window.edit()->hint()->text()));
        QVERIFY(window.edit()->hint()->text().contains(QStringLiteral("Earliest place: after")));
        QTest::keyClick(view, Qt::Key_Period, Qt::ControlModifier);
        QVERIFY(window.editor()->valid());
        QVERIFY(!window.edit()->hint()->isVisible());
        window.editor()->undoStack()->undo();
        window.editor()->undoStack()->undo();
        QVERIFY(!window.editor()->changed());
        // Refusing: it moves back, and the reason is still shown.
        window.actions()[ActionId::StrictMoves]->setChecked(true);
        WindowFixture::drag(view, from, QPoint(first.x() - 20, first.y()));
        QVERIFY(window.editor()->valid());
        QVERIFY(!window.editor()->changed());
        QTRY_VERIFY_WITH_TIMEOUT(window.edit()->hint()->isVisible(), longWait);
        window.actions()[ActionId::StrictMoves]->setChecked(false);
        // Carried along: its dependants follow.
        window.actions()[ActionId::CarryAlong]->setChecked(true);
        const QPoint f = WindowFixture::centre(window, spanOf(window, "0F4")), later = WindowFixture::centre(window, spanOf(window, "0B5"));
        WindowFixture::drag(view, f, QPoint(later.x() + 10, later.y()));
        QVERIFY(window.editor()->changed());
        QVERIFY(window.editor()->valid());
        window.actions()[ActionId::CarryAlong]->setChecked(false);
    }

    void theDragShowsThePictureItWouldGive()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(edit(fixture, window, "zb-h1"));
        TimelineView* view = window.timelineView();
        const QPoint from = WindowFixture::centre(window, spanOf(window, "0W0")), to = WindowFixture::centre(window, spanOf(window, "0W5"));
        QTest::mousePress(view, Qt::LeftButton, {}, from);
        for (int i = 1; i <= 4; ++i) {
            const QPoint at = from + (to - from) * i / 4;
            QMouseEvent move(QEvent::MouseMove, at, view->mapToGlobal(at), Qt::NoButton, Qt::LeftButton, Qt::NoModifier);
            QCoreApplication::sendEvent(view, &move);
        }
        QVERIFY(window.editor()->previewing());
        QVERIFY(view->preview() != nullptr);
        QVERIFY(window.findChild<EditOverlay*>()->ghost() != nullptr); // the order before
        QCOMPARE(view->preview()->duration, window.editor()->figures().makespan);
        const Schedule shown = window.editor()->shown();
        QTest::mouseRelease(view, Qt::LeftButton, {}, to);
        QVERIFY(view->preview() == nullptr);
        QVERIFY(window.editor()->schedule() == shown);
        QVERIFY(window.findChild<EditOverlay*>()->ghost() == nullptr);
        // Esc: as before.
        QTest::mousePress(view, Qt::LeftButton, {}, WindowFixture::centre(window, spanOf(window, "1W0")));
        const QPoint away = WindowFixture::centre(window, spanOf(window, "1W5"));
        QMouseEvent move(QEvent::MouseMove, away, view->mapToGlobal(away), Qt::NoButton, Qt::LeftButton, Qt::NoModifier);
        QCoreApplication::sendEvent(view, &move);
        QTest::keyClick(view, Qt::Key_Escape);
        QVERIFY(!window.editor()->previewing());
        QVERIFY(window.editor()->schedule() == shown);
        QTest::mouseRelease(view, Qt::LeftButton, {}, away);
        QVERIFY(window.editor()->schedule() == shown);
    }

    void ranksAreChangedWhereThePlacementAllows()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(edit(fixture, window, "chimera"));
        const OpPosition at = find(window.editor()->schedule(), "1F0");
        window.edit()->choose({at});
        const auto copies = window.editor()->schedule().placement.copiesOf(1);
        const int other = copies[0].rank == at.rank ? copies[1].rank : copies[0].rank;
        trigger(window, other > at.rank ? ActionId::RankBelow : ActionId::RankAbove);
        QCOMPARE(window.editor()->schedule().placement.rankOf(1, 0), other);
        QCOMPARE(window.edit()->chosen().front().rank, other);
        window.leaveEdit();

        WindowFixture elsewhere;
        MainWindow plain;
        QVERIFY(edit(elsewhere, plain, "1f1b"));
        plain.edit()->choose({find(plain.editor()->schedule(), "1F0")});
        trigger(plain, ActionId::RankBelow);
        QVERIFY(!plain.editor()->changed());
        QVERIFY2(plain.edit()->hint()->text().contains(QStringLiteral("the weights of stage 1 are on rank 1 alone")), qPrintable(plain.edit()->hint()->text()));
    }

    void patternsAreStampedAlongMicrobatches()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(edit(fixture, window, "1f1b"));
        const Schedule before = window.editor()->schedule();
        window.timelineView()->setFocus();
        window.edit()->choose({find(before, "0F3")});
        trigger(window, ActionId::ChooseMicrobatch);
        QCOMPARE(window.edit()->chosen().size(), std::size_t{8});
        trigger(window, ActionId::CutOps);
        QCOMPARE(window.editor()->unplaced().size(), std::size_t{8});
        QVERIFY(window.edit()->tray()->isVisible());
        trigger(window, ActionId::PasteOps);
        QVERIFY(window.editor()->complete());
        QVERIFY(window.editor()->valid());
        QVERIFY(!window.edit()->tray()->isVisible());
        trigger(window, ActionId::PasteOps); // of microbatch 4, one period later: at its place, or near it
        QVERIFY(window.editor()->complete());
        while (window.editor()->undoStack()->canUndo())
            window.editor()->undoStack()->undo();
        QVERIFY(window.editor()->schedule() == before);
    }

    void splitFillSwapSnapAndMicrobatches()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(edit(fixture, window, "1f1b"));
        const Schedule before = window.editor()->schedule();
        window.edit()->choose(allPositions(before));
        trigger(window, ActionId::SplitBackward);
        QCOMPARE(window.editor()->undoStack()->undoText(), QStringLiteral("Split 32 backwards"));
        QVERIFY(window.editor()->schedule().splitsBackward());
        QVERIFY(window.editor()->valid());
        // Every W to the end of rank 0, then into the gaps one after another.
        trigger(window, ActionId::SnapAll);
        QVERIFY(window.editor()->valid());
        window.edit()->choose(allPositions(window.editor()->schedule()));
        trigger(window, ActionId::MergeBackward);
        QVERIFY(!window.editor()->schedule().splitsBackward());
        while (window.editor()->undoStack()->canUndo())
            window.editor()->undoStack()->undo();
        QVERIFY(window.editor()->schedule() == before);
        window.edit()->choose({{0, 0}, {0, 1}});
        trigger(window, ActionId::SwapOps);
        QCOMPARE(window.editor()->schedule().order[0][0], before.order[0][1]);
        window.editor()->undoStack()->undo();
        window.edit()->choose({{1, 2}});
        trigger(window, ActionId::InsertRecompute);
        QCOMPARE(window.editor()->schedule().opCount(), before.opCount() + 1);
        window.editor()->undoStack()->undo();
        QVERIFY(window.edit()->changeMicrobatches(12));
        QCOMPARE(window.editor()->schedule().microbatches, 12);
        QVERIFY(window.editor()->valid());
        QTRY_VERIFY_WITH_TIMEOUT(window.edit()->settled() && window.editPanel()->recognised().contains(QStringLiteral("1F1B")), longWait);
    }

    void textAndCanvasAreInStep()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(edit(fixture, window, "1f1b"));
        ScheduleText* text = window.edit()->text();
        QVERIFY(text->isVisible());
        const Schedule before = window.editor()->schedule();
        QCOMPARE(text->field()->toPlainText(), textLinesOf(before)->join(QLatin1Char('\n')));
        // The canvas moves an op: the text follows; the caret is in the selected op.
        QVERIFY(window.editor()->nudge(find(before, "0F1"), 1));
        QCOMPARE(text->field()->toPlainText(), textLinesOf(window.editor()->schedule())->join(QLatin1Char('\n')));
        window.edit()->choose({{2, 3}});
        QCOMPARE(text->field()->textCursor().blockNumber(), 2);
        // Typed: two ops of rank 3 swap places; both views show the fault.
        text->field()->setFocus();
        QString typed = text->field()->toPlainText();
        typed.replace(QStringLiteral("3F0,3B0"), QStringLiteral("3B0,3F0"));
        text->field()->selectAll();
        text->field()->insertPlainText(typed);
        QTRY_VERIFY_WITH_TIMEOUT(text->settled() && !window.editor()->valid(), longWait);
        QCOMPARE(text->fault().line, 3);
        QVERIFY(!window.findChild<EditOverlay*>()->faults().empty());
        QCOMPARE(text->field()->toPlainText(), typed);
        QTest::keyClick(text->field(), Qt::Key_Z, Qt::ControlModifier);
        QVERIFY(window.editor()->valid());
        // The caret selects the op.
        QTextCursor cursor = text->field()->textCursor();
        cursor.setPosition(text->field()->document()->findBlockByNumber(1).position() + 1);
        text->field()->setTextCursor(cursor);
        QCOMPARE(window.edit()->chosen(), (std::vector<OpPosition>{{1, 0}}));
    }

    void anEmptyCanvasIsFilledFromTheTray()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.actions()[ActionId::NewEmpty]->trigger();
        auto* dialog = window.findChild<QDialog*>(QStringLiteral("newEmpty"));
        QVERIFY(dialog != nullptr);
        dialog->findChildren<QSpinBox*>().at(2)->setValue(1);
        QTest::keyClick(dialog, Qt::Key_Return);
        QTRY_VERIFY_WITH_TIMEOUT(window.mode() == MainWindow::Mode::Edit && WindowFixture::settle(window), longWait);
        QCOMPARE(window.editor()->schedule().opCount(), std::size_t{0});
        OpTray* tray = window.edit()->tray();
        QCOMPARE(tray->count(), 4);
        for (int i = 0; i < 4; ++i) { // the ready one is first
            tray->list()->setFocus();
            QTest::keyClick(tray->list(), Qt::Key_Return);
        }
        QVERIFY(window.editor()->complete());
        QVERIFY(window.editor()->valid());
        QCOMPARE(window.editor()->figures().makespan, 6 * rankShare);
        QVERIFY(window.edit()->changeMicrobatches(2));
        QVERIFY(tray->isVisible());
        window.edit()->refreshActions();
        emit tray->placeAllAsked();
        QVERIFY(window.editor()->complete() && window.editor()->valid());
        QCOMPARE(window.editor()->figures().makespan, 9 * rankShare);
        window.editor()->undoStack()->setIndex(0);
        QCOMPARE(window.editor()->schedule().opCount(), std::size_t{0});
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
        window.openFiles({path});
        QTRY_VERIFY_WITH_TIMEOUT(window.mode() == MainWindow::Mode::Edit && WindowFixture::settle(window), longWait);
        QCOMPARE(window.editor()->unplaced(), std::vector<Op>{*parseOp("1F1")});
        emit window.edit()->tray()->placeAllAsked();
        QVERIFY(window.editor()->complete() && window.editor()->valid());
    }

    void theLibraryIsComparedWith()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(edit(fixture, window, "1f1b"));
        window.edit()->compareWith(QStringLiteral("zb-h1"));
        QTRY_VERIFY_WITH_TIMEOUT(window.edit()->settled(), longWait);
        QVERIFY2(window.editPanel()->plainText().contains(QStringLiteral("against ZB-H1")), qPrintable(window.editPanel()->plainText()));
        QVERIFY(window.findChild<EditOverlay*>()->ghost() != nullptr);
        window.edit()->compareWith(QStringLiteral("chimera:f=9"));
        QTRY_VERIFY_WITH_TIMEOUT(window.edit()->settled(), longWait);
        QVERIFY(!window.editPanel()->plainText().contains(QStringLiteral("against ZB-H1")));
        window.edit()->compareWith({});
        QVERIFY(window.findChild<EditOverlay*>()->ghost() == nullptr);
        QVERIFY(window.editPanel()->recognised().contains(QStringLiteral("1F1B")));
    }

    void whatIsLeftStaysInTheList()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(edit(fixture, window, "zb-h1"));
        const std::size_t runs = window.runs()->refs().size();
        trigger(window, ActionId::SnapAll);
        QVERIFY(window.editor()->changed());
        window.leaveEdit();
        QTRY_COMPARE_WITH_TIMEOUT(window.runs()->refs().size(), runs + 1, longWait);
        // With a fault it can't be a run: editing the same run again restores it.
        window.enterEdit();
        QVERIFY(window.editor()->move(find(window.editor()->schedule(), "0I1"), 0));
        QVERIFY(!window.editor()->valid());
        const Schedule left = window.editor()->schedule();
        window.leaveEdit();
        window.enterEdit();
        QVERIFY(window.editor()->schedule() == left);
        window.editor()->undoStack()->undo();
        QVERIFY(!window.editor()->changed());
        window.leaveEdit();
    }

    // Running an order keeps it only if the recording starts and has steps.
    void anOrderThatCouldNotBeRecordedIsKept()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(edit(fixture, window, "zb-h1"));
        trigger(window, ActionId::SnapAll);
        QVERIFY(window.editor()->changed() && window.editor()->valid());
        const QByteArray program = qgetenv("STAGEWRIGHT_PROGRAM");
        qputenv("STAGEWRIGHT_PROGRAM", "/nonexistent");
        trigger(window, ActionId::RunEdited);
        qputenv("STAGEWRIGHT_PROGRAM", program);
        if (program.isEmpty()) qunsetenv("STAGEWRIGHT_PROGRAM");
        QVERIFY(!window.recording()->running());
        QVERIFY2(window.bannerText().contains(QStringLiteral("was not found")), qPrintable(window.bannerText()));
        QTRY_VERIFY_WITH_TIMEOUT(window.edit()->autosave()->written() && QFileInfo::exists(window.edit()->autosave()->file()), longWait);
        const std::size_t runs = window.runs()->refs().size();
        window.leaveEdit();
        QTRY_COMPARE_WITH_TIMEOUT(window.runs()->refs().size(), runs + 1, longWait);
    }

    // A window killed while editing: the next one offers the order, and two windows never share a file.
    void aKilledWindowIsRecovered()
    {
        WindowFixture fixture;
        const QString file = fixture.file("runs.stagewright", {"1f1b"});
        QProcess child;
        child.setProcessChannelMode(QProcess::ForwardedErrorChannel);
        child.start(QCoreApplication::applicationFilePath(), {QStringLiteral("--edit-until-killed"), fixture.dir.path(), file});
        QVERIFY(child.waitForStarted(longWait));
        QByteArray said;
        QVERIFY(QTest::qWaitFor([&] { return child.waitForReadyRead(50), said += child.readAllStandardOutput(), said.contains("\n"); }, longWait * 2));
        const Schedule original = *makeSchedule("1f1b", Shape{4, 8, 0});
        { // it is still open: its file is its own
            MainWindow second;
            QVERIFY(second.edit()->recovery() == nullptr);
        }
        ::kill(static_cast<pid_t>(child.processId()), SIGKILL);
        QVERIFY(child.waitForFinished(longWait));
        QCOMPARE(child.exitStatus(), QProcess::CrashExit);

        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        QVERIFY(window.edit()->recovery() != nullptr);
        QVERIFY2(window.edit()->recovery()->text().contains(QStringLiteral("runs.stagewright")) && window.edit()->recovery()->text().contains(QStringLiteral("2 changes")), qPrintable(window.edit()->recovery()->text()));
        { // offered once
            MainWindow third;
            QVERIFY(third.edit()->recovery() == nullptr);
        }
        for (QPushButton* button : window.edit()->recovery()->findChildren<QPushButton*>())
            if (button->text().contains(QStringLiteral("Recover"))) QTest::mouseClick(button, Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(window.mode() == MainWindow::Mode::Edit && WindowFixture::settle(window), longWait);
        Schedule wanted = moveOps(original, {{0, 1}}, 1)->schedule;
        wanted = splitBackward(wanted, allPositions(wanted, 2))->schedule;
        QVERIFY(window.editor()->schedule().order == wanted.order);
        QCOMPARE(window.shownRef(), (RunRef{file, 1})); // in its recording, so that its result is stored there
        QCOMPARE(window.runs()->refs().size(), std::size_t(1));
        window.editor()->undoStack()->undo();
        QVERIFY(window.editor()->schedule().order == original.order);
        window.editor()->undoStack()->redo();
        QTRY_VERIFY_WITH_TIMEOUT(window.edit()->autosave()->written(), longWait);
        QVERIFY(QFileInfo::exists(window.edit()->autosave()->file()));
        // Switched off, nothing more is saved; switched on or set more frequent during an edit, changes made meanwhile are saved.
        const Preferences before = PreferenceStore::instance().value();
        Preferences other = before;
        other.autosave = false;
        PreferenceStore::instance().set(other);
        const auto keptNow = [&] {
            QFile kept(window.edit()->autosave()->file());
            if (!kept.open(QIODevice::ReadOnly)) return false;
            const QByteArray bytes = kept.readAll();
            const auto record = readEditRecord(std::string_view(bytes.constData(), static_cast<std::size_t>(bytes.size())));
            return record && record->edited == window.editor()->schedule();
        };
        QVERIFY(window.editor()->apply(tr("move"), moveOps(window.editor()->schedule(), {{1, 1}}, 1)));
        QTest::qWait(1500);
        QVERIFY(!keptNow());
        other.autosave = true;
        other.autosaveSeconds = 600;
        PreferenceStore::instance().set(other);
        QTest::qWait(50);
        QVERIFY(!keptNow());
        PreferenceStore::instance().set(before); // due in ten minutes, now in a second
        QTRY_VERIFY_WITH_TIMEOUT(keptNow(), longWait);
        // After leaving, nothing stays behind.
        window.leaveEdit();
        QTRY_VERIFY_WITH_TIMEOUT(!QFileInfo::exists(window.edit()->autosave()->file()), longWait); // once it is written
        MainWindow last;
        QVERIFY(last.edit()->recovery() == nullptr);
    }
};

// The other process of the test: edits until it is killed.
static int editUntilKilled(int argc, char** argv)
{
    QApplication app(argc, argv);
    QApplication::setApplicationName(QStringLiteral("tst_editing"));
    QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, QString::fromLocal8Bit(argv[2]));
    MainWindow window;
    window.openFiles({QString::fromLocal8Bit(argv[3])});
    if (!WindowFixture::show(window) || !WindowFixture::settle(window)) return 1;
    window.enterEdit();
    if (!window.editor()->move({0, 1}, 2)) return 2;
    if (!window.editor()->apply(QStringLiteral("Split"), splitBackward(window.editor()->schedule(), allPositions(window.editor()->schedule(), 2)))) return 3;
    if (!QTest::qWaitFor([&] { return window.edit()->autosave()->written(); }, longWait)) return 4;
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
