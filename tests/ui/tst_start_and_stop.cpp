// What a new user meets first: closing during a recording, cancelling, restarting, finding, comparing a third run,
// predictions for a split backward.
#include <QDir>
#include <QLabel>
#include <QMessageBox>
#include <QProcess>
#include <QPushButton>
#include <QScopeGuard>
#include <QSignalSpy>
#include <QTreeView>
#include <cmath>

#include "app/costs/split_sources.h"
#include "app/ui/compare/compare_controller.h"
#include "app/ui/edit/edit_controller.h"
#include "app/ui/edit/recovery_bar.h"
#include "app/ui/files/welcome_page.h"
#include "app/ui/search/search_controller.h"
#include "app/ui/shell/session_controller.h"
#include "app/ui/shell/window_set.h"
#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/scratch_folder.h"
#include "app/ui/workspace/workspace.h"
#include "schedules/edit/edit_ops.h"
#include "tests/ui/window_fixture.h"
#include "widgets/edit/op_tray.h"
#include "widgets/edit/schedule_editor.h"
#include "widgets/edit/schedule_text.h"
#include "widgets/memory/memory_view.h"
#include "widgets/record/record_process.h"
#include "widgets/runs/runs_panel.h"
#include "widgets/search/find_field.h"
#include "widgets/timeline/timeline_view.h"

using namespace stagewright;

namespace {

constexpr int waitOfAProcess = 60000;

std::vector<RunInfo> runsOf(const QString& path)
{
    auto file = RunFile::open(path.toStdString(), OpenMode::Read);
    if (!file) return {};
    auto infos = (*file)->runs();
    return infos ? *infos : std::vector<RunInfo>{};
}

QString welcomeText(MainWindow& window)
{
    QStringList words;
    for (const QLabel* label : window.findChild<WelcomePage*>()->findChildren<QLabel*>()) words << label->text();
    return words.join(QLatin1Char('\n'));
}

} // namespace

class TestStartAndStop : public QObject {
    Q_OBJECT

    std::unique_ptr<WindowFixture> m_fixture;

    static Setup endless(int warmup = 0)
    {
        Setup settings = WindowFixture::tinyRecording();
        settings.steps = 1000000;
        settings.warmup = warmup;
        return settings;
    }
    // Closes it while it records; returns the question it asks.
    static QMessageBox* asked(MainWindow& window)
    {
        window.close();
        return window.findChild<QMessageBox*>(QStringLiteral("stopRecording"));
    }
    static QAbstractButton* answer(QMessageBox* box, QMessageBox::ButtonRole role)
    {
        for (QAbstractButton* button : box->buttons())
            if (box->buttonRole(button) == role) return button;
        return nullptr;
    }
    static QVariantMap stateOf(MainWindow& window)
    {
        window.workspace().feature<SessionController>()->keepSimulated(true);
        return window.workspace().feature<SessionController>()->state();
    }

private slots:
    void initTestCase() { QVERIFY2(WindowFixture::recordsWithBuiltProgram(), "the program stagewright is not built"); }
    void init() { m_fixture = std::make_unique<WindowFixture>(); }
    void cleanup() { m_fixture.reset(); }

    // A recording window asks before it closes, and the measured steps are in its file afterwards.
    void closingWhileItRecordsAsksAndKeeps()
    {
        const QString path = m_fixture->file("kept.stagewright", {"1f1b"});
        MainWindow window;
        QVERIFY(WindowFixture::open(window, {path}));
        window.workspace().feature<Recording>()->startRecording(endless(), path, false);
        QTRY_VERIFY_WITH_TIMEOUT(window.workspace().feature<Recording>()->process()->done() >= 2, waitOfAProcess);
        QMessageBox* box = asked(window);
        QVERIFY(box != nullptr);
        QVERIFY(window.isVisible());
        answer(box, QMessageBox::RejectRole)->click();
        const int done = window.workspace().feature<Recording>()->process()->done();
        QTRY_VERIFY_WITH_TIMEOUT(window.workspace().feature<Recording>()->process()->done() > done, waitOfAProcess);
        QVERIFY(window.isVisible() && window.workspace().feature<Recording>()->process()->running());
        QTRY_VERIFY_WITH_TIMEOUT(window.findChild<QMessageBox*>(QStringLiteral("stopRecording")) == nullptr,
                                 waitOfAProcess);
        box = asked(window);
        QVERIFY(box != nullptr);
        answer(box, QMessageBox::AcceptRole)->click();
        QTRY_VERIFY_WITH_TIMEOUT(!window.isVisible(), waitOfAProcess);
        const auto runs = runsOf(path);
        QCOMPARE(runs.size(), std::size_t(2));
        QVERIFY(runs[1].steps >= 2);
        QVERIFY(runs[1].state == RunState::Interrupted);
        // The next start opens it without a message.
        MainWindow again;
        QVERIFY(WindowFixture::show(again));
        again.workspace().feature<SessionController>()->restore(stateOf(window));
        QVERIFY(WindowFixture::settle(again));
        QVERIFY2(again.workspace().banner()->text().isEmpty(), qPrintable(again.workspace().banner()->text()));
        QCOMPARE(again.workspace().runs()->refs().size(), std::size_t(2));
    }

    // A running recording leaves nothing in the session that disappears with its window.
    void aKilledWindowLosesNoStep()
    {
        const QString path = m_fixture->file("kept.stagewright", {"1f1b"});
        QVariantMap state;
        QString scratch;
        {
            MainWindow window;
            QVERIFY(WindowFixture::open(window, {path}));
            window.workspace().feature<Recording>()->startRecording(endless(), path, false);
            QTRY_VERIFY_WITH_TIMEOUT(
                window.workspace().feature<Recording>()->process()->done() >= 2 &&
                    window.workspace().shown().mode() == Shown::Mode::Run &&
                    window.workspace().feature<Recording>()->isScratch(window.workspace().shown().ref().file),
                waitOfAProcess);
            state = window.workspace().feature<SessionController>()->state();
            QCOMPARE(state.value(QStringLiteral("files")).toStringList(), QStringList{path});
            window.workspace().actions()["cancelRecording"]->trigger();
            QTRY_VERIFY_WITH_TIMEOUT(!window.workspace().feature<Recording>()->process()->running(), waitOfAProcess);
            // as a killed window leaves it: the file in its temporary folder
            const QString file = state.value(QStringLiteral("recording")).toStringList().value(0);
            scratch = m_fixture->dir.filePath(QStringLiteral("left/recording-1.stagewright"));
            QVERIFY(QDir().mkpath(QFileInfo(scratch).path()));
            QTRY_VERIFY_WITH_TIMEOUT(window.workspace().settled(), waitOfAProcess);
            QVERIFY(!QFileInfo::exists(file)); // adopted here; replaced by another one
            QVERIFY(QFile::copy(path, scratch));
        }
        const std::size_t before = runsOf(path).size();
        state[QStringLiteral("recording")] = QStringList{scratch, path};
        MainWindow again;
        QVERIFY(WindowFixture::show(again));
        again.workspace().feature<SessionController>()->restore(state);
        QTRY_COMPARE_WITH_TIMEOUT(runsOf(path).size(), 2 * before, waitOfAProcess);
        QTRY_VERIFY2_WITH_TIMEOUT(again.workspace().banner()->text().contains(QStringLiteral("during a recording")),
                                  qPrintable(again.workspace().banner()->text()), waitOfAProcess);
        QVERIFY(!QFileInfo::exists(scratch));
    }

    // What a killed window left in the temporary folder goes at the next start; a recording in it and what a living one
    // has do not.
    void aKilledWindowLeavesNoFolder()
    {
        const QByteArray before = qgetenv("TMPDIR");
        const auto restore = qScopeGuard([&] { before.isNull() ? qunsetenv("TMPDIR") : qputenv("TMPDIR", before); });
        qputenv("TMPDIR", m_fixture->dir.path().toLocal8Bit());
        QProcess ended;
        ended.start(QStringLiteral("sleep"), {QStringLiteral("60")});
        QVERIFY(ended.waitForStarted());
        const QByteArray dead = QByteArray::number(ended.processId());
        ended.kill();
        QVERIFY(ended.waitForFinished());
        const auto folder = [&](const char* name, const QByteArray& owner) {
            const QString path = m_fixture->dir.filePath(QStringLiteral("stagewright-window-") + QLatin1String(name));
            QDir().mkpath(path + QStringLiteral("/1"));
            for (const QString& file :
                 {path + QStringLiteral("/1/1f1b (edited)"), path + QStringLiteral("/owner.lock")}) {
                QFile made(file);
                if (made.open(QIODevice::WriteOnly) && file.endsWith(QLatin1String("lock")))
                    made.write(owner + "\nstagewright\n" + QSysInfo::machineHostName().toUtf8() + "\n");
            }
            return path;
        };
        const QString killed = folder("killed", dead), recorded = folder("recorded", dead),
                      unlocked = folder("beingmade", dead);
        QVERIFY(QFile(recorded + QStringLiteral("/recording-1.stagewright")).open(QIODevice::WriteOnly));
        QVERIFY(QFile::remove(unlocked + QStringLiteral("/owner.lock")));
        QString own;
        {
            const ScratchFolder living;
            own = living.path();
            QVERIFY(own.startsWith(m_fixture->dir.path()));
            ScratchFolder::removeAbandoned();
            QVERIFY(QFileInfo(own).isDir());
            QVERIFY(!QFileInfo::exists(killed));
            QVERIFY(QFileInfo(recorded).isDir() && QFileInfo(unlocked).isDir());
        }
        QVERIFY(!QFileInfo::exists(own));
    }

    // Cancelled in its warm-up: a good file stays as it was; a new one is not made; nothing says that runs were
    // recorded.
    void warmUpAloneIsNotKept()
    {
        const QString good = m_fixture->file("good.stagewright", {"1f1b"});
        const QString fresh = m_fixture->dir.filePath(QStringLiteral("new.stagewright"));
        MainWindow window;
        QVERIFY(WindowFixture::open(window, {good}));
        for (const QString& path : {good, fresh}) {
            window.workspace().feature<Recording>()->startRecording(endless(1000000), path, path == fresh);
            QTRY_VERIFY_WITH_TIMEOUT(window.workspace().feature<Recording>()->process()->done() >= 2, waitOfAProcess);
            window.workspace().actions()["cancelRecording"]->trigger();
            QTRY_VERIFY_WITH_TIMEOUT(!window.workspace().feature<Recording>()->process()->running() &&
                                         window.workspace().settled(),
                                     waitOfAProcess);
            QVERIFY2(window.workspace().banner()->text().contains(QStringLiteral("nothing was kept")),
                     qPrintable(window.workspace().banner()->text()));
        }
        QCOMPARE(runsOf(good).size(), std::size_t(1));
        QVERIFY(!QFileInfo::exists(fresh));
        QCOMPARE(window.workspace().runs()->files(), QStringList{good});
        QCOMPARE(window.workspace().shown().ref(), (RunRef{good, 1})); // not an empty page beside the list
        QVERIFY(window.workspace().shown().mode() == Shown::Mode::Run);
    }

    void namesDoNotCollide()
    {
        const QString path = m_fixture->dir.filePath(QStringLiteral("names.stagewright"));
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        for (const bool isNew : {true, false}) {
            window.workspace().feature<Recording>()->startRecording(WindowFixture::tinyRecording(), path, isNew);
            QTRY_VERIFY_WITH_TIMEOUT(!window.workspace().feature<Recording>()->process()->running() &&
                                         window.workspace().settled(),
                                     waitOfAProcess);
        }
        const auto runs = runsOf(path);
        QCOMPARE(runs.size(), std::size_t(2));
        QCOMPARE(runs[1].name, runs[0].name + " (2)");
        QCOMPARE(runTitle(runs[1]), runTitle(runs[0]) + QStringLiteral(" (2)"));
        // A new recording never replaces a file.
        window.workspace().feature<Recording>()->startRecording(WindowFixture::tinyRecording(), path, true);
        QTRY_VERIFY_WITH_TIMEOUT(!window.workspace().feature<Recording>()->process()->running() &&
                                     window.workspace().settled(),
                                 waitOfAProcess);
        QCOMPARE(runsOf(path).size(), std::size_t(2));
        QVERIFY(window.workspace().banner()->text().contains(QStringLiteral("names-2.stagewright")));
    }

    // A start shows a run if there is one, restores in-memory runs, and reports missing files once.
    void aStartContradictsNothing()
    {
        const QString path = m_fixture->file("runs.stagewright", {"1f1b", "zb-h1"});
        QVariantMap state;
        {
            MainWindow window;
            QVERIFY(WindowFixture::open(window, {path}));
            window.workspace().feature<LibraryOpening>()->newFromLibrary(QStringLiteral("gpipe"), Shape(3, 5));
            QVERIFY(WindowFixture::settle(window));
            QVERIFY(window.workspace().library()->isSimulated(window.workspace().shown().ref().file));
            window.workspace().library()->open(m_fixture->dir.filePath(QStringLiteral("unreadable.stagewright")));
            QFile bad(m_fixture->dir.filePath(QStringLiteral("bad.stagewright")));
            QVERIFY(bad.open(QIODevice::WriteOnly) && bad.write("not a run file, whatever its name says") > 0);
            bad.close();
            window.workspace().feature<FileOpening>()->openFiles({bad.fileName()});
            QVERIFY(WindowFixture::settle(window));
            QVERIFY(!window.workspace().banner()->text().isEmpty());
            state = stateOf(window);
            // unreadable files were reported
            QCOMPARE(state.value(QStringLiteral("files")).toStringList(), QStringList{path});
        }
        { // the run that was shown is in memory only
            MainWindow again;
            QVERIFY(WindowFixture::show(again));
            again.workspace().feature<SessionController>()->restore(state);
            QTRY_VERIFY_WITH_TIMEOUT(
                again.workspace().settled() && again.workspace().shown().mode() == Shown::Mode::Run, waitOfAProcess);
            QVERIFY2(again.workspace().banner()->text().isEmpty(), qPrintable(again.workspace().banner()->text()));
            QVERIFY(again.workspace().library()->isSimulated(again.workspace().shown().ref().file));
            QCOMPARE(again.workspace().shown().view()->run->info.ranks, 3);
            QCOMPARE(again.workspace().runs()->refs().size(), std::size_t(3));
        }
        { // it can't be read, as one of a newer version: it is set aside with all that is in it, and named
            const QString kept =
                SessionController::folder() + QLatin1Char('/') + state.value(QStringLiteral("id")).toString();
            QFile file(kept + QStringLiteral(".simulated"));
            QVERIFY(file.open(QIODevice::ReadOnly));
            const QByteArray good = file.readAll();
            file.close();
            QByteArray newer = good;
            newer[63] = 99; // its version
            for (const QByteArray& bytes :
                 {newer, good.left(good.size() / 2), QByteArray("not a run file"), QByteArray()}) {
                QVERIFY(file.open(QIODevice::WriteOnly | QIODevice::Truncate) && file.write(bytes) == bytes.size());
                file.close();
                {
                    MainWindow again;
                    QVERIFY(WindowFixture::show(again));
                    again.workspace().feature<SessionController>()->restore(state);
                    QTRY_VERIFY_WITH_TIMEOUT(again.workspace().settled() &&
                                                 !again.workspace().feature<SessionController>()->restoring(),
                                             waitOfAProcess);
                    QVERIFY2(again.workspace().banner()->text().contains(QStringLiteral("-unread.stagewright")),
                             qPrintable(again.workspace().banner()->text()));
                    again.workspace().feature<SessionController>()->keepSimulated(true); // as at its end
                }
                QFile aside(kept + QStringLiteral("-unread.stagewright"));
                QVERIFY(aside.open(QIODevice::ReadOnly));
                QCOMPARE(aside.readAll(), bytes);
                QVERIFY(aside.remove());
            }
            QVERIFY(file.open(QIODevice::WriteOnly | QIODevice::Truncate) && file.write(good) == good.size());
        }
        { // it is gone: shows the first of the others, not the welcome page
            QVERIFY(QFile::remove(SessionController::folder() + QLatin1Char('/') +
                                  state.value(QStringLiteral("id")).toString() + QStringLiteral(".simulated")));
            MainWindow again;
            QVERIFY(WindowFixture::show(again));
            again.workspace().feature<SessionController>()->restore(state);
            QTRY_VERIFY_WITH_TIMEOUT(
                again.workspace().settled() && again.workspace().shown().mode() == Shown::Mode::Run, waitOfAProcess);
            QCOMPARE(again.workspace().shown().ref(), (RunRef{path, 1}));
        }
        MainWindow listed; // runs are listed, none is shown
        QVERIFY(WindowFixture::show(listed));
        QVERIFY(welcomeText(listed).contains(QStringLiteral("Start in one of these ways")));
        listed.workspace().library()->open(path);
        QTRY_COMPARE_WITH_TIMEOUT(listed.workspace().runs()->refs().size(), std::size_t(2), waitOfAProcess);
        QVERIFY2(welcomeText(listed).contains(QStringLiteral("No run is shown")) &&
                     !welcomeText(listed).contains(QStringLiteral("Start in one of these ways")),
                 qPrintable(welcomeText(listed)));
    }

    // Edit mode is restored only if no edit can be recovered; a simulated run is edited again as itself.
    void recoveringIsNotContradicted()
    {
        const QString path = m_fixture->file("runs.stagewright", {"1f1b"});
        QVariantMap state;
        Schedule edited;
        {
            MainWindow window;
            QVERIFY(WindowFixture::open(window, {path}));
            window.workspace().feature<OrderEditing>()->enterEdit();
            QVERIFY(WindowFixture::settle(window));
            QVERIFY(window.workspace().feature<OrderEditing>()->editor().apply(
                QStringLiteral("move"),
                moveOps(window.workspace().feature<OrderEditing>()->editor().schedule(), {{0, 1}}, 1)));
            edited = window.workspace().feature<OrderEditing>()->editor().schedule();
            state = stateOf(window);
            window.workspace().feature<EditController>()->closing();
        }
        MainWindow again;
        QVERIFY(WindowFixture::show(again));
        QVERIFY(again.workspace().feature<EditController>()->offersRecovery());
        again.workspace().feature<SessionController>()->restore(state);
        QTRY_VERIFY_WITH_TIMEOUT(again.workspace().settled() && again.workspace().shown().mode() == Shown::Mode::Run,
                                 waitOfAProcess);
        QVERIFY(WindowFixture::finish(again));
        QVERIFY(again.workspace().shown().mode() == Shown::Mode::Run);
        for (QPushButton* button :
             again.workspace().feature<EditController>()->recovery().bar()->findChildren<QPushButton*>())
            if (button->text().contains(QStringLiteral("Recover"))) button->click();
        QTRY_VERIFY_WITH_TIMEOUT(again.workspace().shown().mode() == Shown::Mode::Edit && again.workspace().settled(),
                                 waitOfAProcess);
        QVERIFY(again.workspace().feature<OrderEditing>()->editor().schedule().order == edited.order);
        QCOMPARE(again.workspace().shown().ref(), (RunRef{path, 1}));
        QCOMPARE(again.workspace().runs()->refs().size(), std::size_t(1));
        again.workspace().feature<OrderEditing>()->leaveEdit();
    }

    // The field's example works with a split B, and the answer is in the field.
    void theFieldAnswersBesideItself()
    {
        const QString path = m_fixture->file("runs.stagewright", {"zb-h1"});
        MainWindow window;
        QVERIFY(WindowFixture::open(window, {path}));
        FindField* field = window.workspace().views().find;
        field->setFocus();
        QTest::keyClicks(field, QStringLiteral("rank:2 mb:5 B"));
        QTest::keyClick(field, Qt::Key_Return);
        QTRY_COMPARE_WITH_TIMEOUT(field->answer(), QStringLiteral("1 of 2"), waitOfAProcess);
        const Timeline& timeline = *window.workspace().shown().view()->run->timeline;
        QVERIFY(timeline.spans()[window.workspace().viewState()->selected().span].op.kind == OpKind::InputGrad);
        QTest::keyClick(field, Qt::Key_Return);
        QCOMPARE(field->answer(), QStringLiteral("2 of 2"));
        QVERIFY(timeline.spans()[window.workspace().viewState()->selected().span].op.kind == OpKind::WeightGrad);
        field->clear();
        QTest::keyClicks(field, QStringLiteral("2B5"));
        QVERIFY(field->answer().isEmpty());
        QTest::keyClick(field, Qt::Key_Return);
        QCOMPARE(field->answer(), QStringLiteral("1 of 2"));
        field->clear();
        QTest::keyClicks(field, QStringLiteral("rank:9"));
        QTest::keyClick(field, Qt::Key_Return);
        QCOMPARE(field->answer(), QStringLiteral("no match"));
        field->clear();
        QTest::keyClicks(field, QStringLiteral("rank:two"));
        QTest::keyClick(field, Qt::Key_Return);
        QVERIFY(field->answer().contains(QStringLiteral("a number is needed")));
        QVERIFY(field->faultLabel()->isVisible());
        const QRect at(field->mapTo(&window, QPoint(0, 0)), field->size()), fault = field->faultLabel()->geometry();
        QVERIFY(!fault.intersects(at) && window.rect().contains(fault));
        QVERIFY(std::abs(fault.right() - at.right()) <= 2 && fault.top() - at.bottom() < 6);
    }

    // Ctrl+click, once more, and a third time: three runs with their own letters everywhere, one table with a column
    // each.
    void ctrlClicksAddRuns()
    {
        const QString path = m_fixture->file("runs.stagewright", {"gpipe", "1f1b", "zb-h1", "zb-h2", "zbv"});
        MainWindow window;
        QVERIFY(WindowFixture::open(window, {path}));
        auto* panel = window.findChild<RunsPanel*>();
        const auto click = [&](qint64 id) {
            const QRect row = panel->tree()->visualRect(window.workspace().runs()->indexOf({path, id}));
            QTest::mouseMove(panel->tree()->viewport(), row.center());
            emit panel->compareAsked({path, id}); // the offscreen platform knows no pressed modifier
        };
        click(2);
        click(3); // before the first is on screen
        QTRY_VERIFY_WITH_TIMEOUT(
            window.workspace().settled() && window.workspace().shown().mode() == Shown::Mode::Compare, waitOfAProcess);
        QCOMPARE(window.workspace().views().timeline->panels().size(), std::size_t(3));
        for (int i = 0; i < 3; ++i)
            QCOMPARE(window.workspace().runs()->indexOf({path, i + 1}).data(RunsModel::MarkRole).toString(),
                     QString(QChar(u'A' + i)));
        const QString text = window.workspace().feature<CompareController>()->panel()->plainText();
        QVERIFY2(text.contains(QStringLiteral("Differences from A")), qPrintable(text));
        QVERIFY2(text.contains(QRegularExpression(QStringLiteral("\\bB is [0-9.]+ % (faster|slower)"))) ||
                     text.contains(QStringLiteral("A and B take the same time")),
                 qPrintable(text));
        QVERIFY2(text.contains(QRegularExpression(QStringLiteral("\\bC is [0-9.]+ % (faster|slower)"))),
                 qPrintable(text));
        // The memory curves show A and the compared run, with its own letter.
        QVERIFY2(window.workspace().views().memory->subtitle().contains(QStringLiteral("solid = C")) &&
                     window.workspace().views().memory->subtitle().contains(QStringLiteral("dashed grey = A")),
                 qPrintable(window.workspace().views().memory->subtitle()));
        window.workspace().actions()["nextCompared"]->trigger();
        QVERIFY(window.workspace().views().memory->subtitle().contains(QStringLiteral("solid = B")));
        click(4);
        QTRY_VERIFY_WITH_TIMEOUT(
            window.workspace().settled() && window.workspace().views().timeline->panels().size() == 4, waitOfAProcess);
        click(5); // no room
        QVERIFY(window.workspace().settled());
        QVERIFY(window.workspace().banner()->text().contains(QStringLiteral("At most four runs")));
        click(2); // off again
        QTRY_VERIFY_WITH_TIMEOUT(
            window.workspace().settled() && window.workspace().views().timeline->panels().size() == 3, waitOfAProcess);
        QCOMPARE(window.workspace().runs()->indexOf({path, 3}).data(RunsModel::MarkRole).toString(),
                 QStringLiteral("B"));
        // All of it is restored.
        const QVariantMap state = stateOf(window);
        MainWindow again;
        QVERIFY(WindowFixture::show(again));
        again.workspace().feature<SessionController>()->restore(state);
        QTRY_VERIFY_WITH_TIMEOUT(
            again.workspace().settled() && again.workspace().shown().mode() == Shown::Mode::Compare, waitOfAProcess);
        QCOMPARE(again.workspace().views().timeline->panels().size(), std::size_t(3));
    }

    // Any run of the comparison is shown alone by a click, also the one that the list has as current.
    void aClickOnARunOfTheComparisonShowsItAlone()
    {
        const QString path = m_fixture->file("runs.stagewright", {"1f1b", "zb-h1"});
        MainWindow window;
        QVERIFY(WindowFixture::open(window, {path}));
        auto* tree = window.findChild<QTreeView*>();
        for (const int row : {0, 1}) {
            window.workspace().feature<RunComparing>()->show({{path, 1}, {path, 2}});
            QTRY_VERIFY_WITH_TIMEOUT(window.workspace().settled() &&
                                         window.workspace().shown().mode() == Shown::Mode::Compare,
                                     waitOfAProcess);
            const QModelIndex run = tree->model()->index(row, 0, tree->model()->index(0, 0));
            QTest::mouseClick(tree->viewport(), Qt::LeftButton, {}, tree->visualRect(run).center());
            QTRY_VERIFY_WITH_TIMEOUT(
                window.workspace().settled() && window.workspace().shown().mode() == Shown::Mode::Run, waitOfAProcess);
            QCOMPARE(window.workspace().shown().ref(), (RunRef{path, row + 1}));
        }
        // A click on the edited run does not leave edit mode.
        window.workspace().feature<OrderEditing>()->enterEdit();
        const QModelIndex edited = tree->currentIndex();
        QTest::mouseClick(tree->viewport(), Qt::LeftButton, {}, tree->visualRect(edited).center());
        QVERIFY(WindowFixture::settle(window));
        QCOMPARE(window.workspace().shown().mode(), Shown::Mode::Edit);
    }

    // Cut ops wait in the tray; the text keeps its lines.
    void theTrayLeavesRoom()
    {
        const QString path = m_fixture->file("runs.stagewright", {"zb-h1"}, 4, 8);
        MainWindow window;
        QVERIFY(WindowFixture::open(window, {path}, {1280, 800}));
        window.workspace().feature<OrderEditing>()->enterEdit();
        QVERIFY(WindowFixture::settle(window));
        QTest::qWait(50);
        const int before = window.workspace().feature<EditController>()->deck().text()->height();
        window.workspace().feature<EditController>()->selection().choose({{0, 3}, {1, 3}, {2, 3}});
        window.workspace().actions()["removeOps"]->trigger();
        QVERIFY(WindowFixture::settle(window));
        QTest::qWait(50);
        QVERIFY(window.workspace().feature<EditController>()->deck().tray()->isVisible());
        QVERIFY2(window.workspace().feature<EditController>()->deck().text()->height() >= before - 4,
                 qPrintable(QStringLiteral("%1 of %2")
                                .arg(window.workspace().feature<EditController>()->deck().text()->height())
                                .arg(before)));
        QVERIFY(window.workspace().feature<EditController>()->deck().tray()->height() >=
                window.workspace().feature<EditController>()->deck().tray()->heightFor(
                    window.workspace().feature<EditController>()->deck().tray()->width()) -
                    4);
        window.workspace().feature<OrderEditing>()->editor().undoStack()->undo();
        QTest::qWait(50);
        QVERIFY(std::abs(window.workspace().feature<EditController>()->deck().text()->height() - before) <= 6);
        window.workspace().feature<OrderEditing>()->leaveEdit();
    }

    // Missing I and W are reported and taken from a run of the file that has them.
    void splitBackwardsArePredictedFromAnotherRun()
    {
        const QString path = m_fixture->dir.filePath(QStringLiteral("split.stagewright"));
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        Setup settings = WindowFixture::tinyRecording();
        settings.schedules = {"1f1b"};
        settings.steps = 4;
        window.workspace().feature<Recording>()->startRecording(settings, path, true);
        QTRY_VERIFY_WITH_TIMEOUT(!window.workspace().feature<Recording>()->process()->running() &&
                                     window.workspace().settled(),
                                 waitOfAProcess);
        const auto split = [&] {
            window.workspace().shown().showRun({path, 1});
            QTRY_VERIFY_WITH_TIMEOUT(
                window.workspace().settled() && window.workspace().shown().ref() == (RunRef{path, 1}), waitOfAProcess);
            window.workspace().feature<OrderEditing>()->enterEdit();
            QVERIFY(WindowFixture::settle(window));
            QVERIFY2(
                !window.workspace().feature<EditController>()->panel()->plainText().contains(QStringLiteral("I and W")),
                qPrintable(window.workspace().feature<EditController>()->panel()->plainText()));
            QVERIFY(window.workspace().feature<OrderEditing>()->editor().apply(
                QStringLiteral("split"),
                splitBackward(window.workspace().feature<OrderEditing>()->editor().schedule(),
                              allPositions(window.workspace().feature<OrderEditing>()->editor().schedule(), 1))));
        };
        split();
        const auto share = [](const CostModel& costs) {
            const auto input = static_cast<double>(costs.duration(OpKind::InputGrad, 0, -1));
            return input / (input + static_cast<double>(costs.duration(OpKind::WeightGrad, 0, -1)));
        };
        const auto freed = [](const CostModel& costs) {
            return static_cast<double>(costs.memory[0].freedAtInput) / static_cast<double>(costs.memory[0].activation);
        };
        // No other run is there yet: times from the layers of the run itself, memory from the model's shape, as
        // simulate --costs-from has it.
        QVERIFY2(window.workspace().feature<EditController>()->panel()->plainText().contains(
                     QStringLiteral("B is split as in the run's layers")),
                 qPrintable(window.workspace().feature<EditController>()->panel()->plainText()));
        QVERIFY2(window.workspace().feature<EditController>()->panel()->plainText().contains(
                     QStringLiteral("What I frees is as in the shape of the model")),
                 qPrintable(window.workspace().feature<EditController>()->panel()->plainText()));
        const CostModel guessed = window.workspace().feature<OrderEditing>()->editor().costs();
        QVERIFY(freed(guessed) != 0);
        const auto first = window.workspace().library()->cachedRun({path, 1});
        QVERIFY(first && first->costs && !knowsSplit(*first->costs));
        // Without its layers the times are from the shape too.
        CostModel bare = *first->costs;
        bare.layers.clear();
        const BackwardCosts shaped = withBackward(bare, *first, 2, {});
        QVERIFY(shaped.use.times && shaped.sources[*shaped.use.times].basis == SplitBasis::Shape);
        QVERIFY2(std::abs(share(shaped.costs) - 0.5) > 0.005, qPrintable(QString::number(share(shaped.costs))));
        QCOMPARE(freed(shaped.costs), freed(guessed));
        window.workspace().feature<OrderEditing>()->editor().revert();
        window.workspace().feature<OrderEditing>()->leaveEdit();
        settings.schedules = {"zb-h1"};
        window.workspace().feature<Recording>()->startRecording(settings, path, false);
        QTRY_VERIFY_WITH_TIMEOUT(!window.workspace().feature<Recording>()->process()->running() &&
                                     window.workspace().settled(),
                                 waitOfAProcess);
        split();
        QVERIFY2(window.workspace().feature<EditController>()->panel()->plainText().contains(
                     QStringLiteral("What I frees is as in run 2, ZB-H1")),
                 qPrintable(window.workspace().feature<EditController>()->panel()->plainText()));
        const CostModel& taken = window.workspace().feature<OrderEditing>()->editor().costs();
        const auto measured = window.workspace().library()->cachedRun({path, 2});
        QVERIFY(measured && measured->costs);
        QVERIFY(share(taken) == share(guessed));
        QVERIFY(std::abs(freed(taken) - freed(*measured->costs)) < 1e-3); // what I adds or frees was not known either
        window.workspace().feature<OrderEditing>()->editor().revert();
        window.workspace().feature<OrderEditing>()->leaveEdit();
    }
};

QTEST_MAIN(TestStartAndStop)
#include "tst_start_and_stop.moc"
