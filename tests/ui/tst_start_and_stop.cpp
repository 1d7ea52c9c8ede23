// What a new user meets first: closing during a recording, cancelling, restarting, finding, comparing a third run, predictions for a
// split backward.
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
#include "app/ui/search/search_controller.h"
#include "app/ui/shell/banner.h"
#include "app/ui/shell/recovery_bar.h"
#include "app/ui/shell/scratch_folder.h"
#include "app/ui/shell/session_controller.h"
#include "app/ui/shell/welcome_page.h"
#include "app/ui/shell/window_set.h"
#include "schedules/edit/edit_ops.h"
#include "tests/ui/window_fixture.h"
#include "widgets/edit/op_tray.h"
#include "widgets/edit/schedule_text.h"
#include "widgets/search/find_field.h"

using namespace stagewright;

namespace {

constexpr int longWait = 60000;

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

    static RecordSettings endless(int warmup = 0)
    {
        RecordSettings settings = WindowFixture::tinyRecording();
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
        window.session()->keepSimulated(true);
        return window.session()->state();
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
        window.startRecording(endless(), path, false);
        QTRY_VERIFY_WITH_TIMEOUT(window.recording()->done() >= 2, longWait);
        QMessageBox* box = asked(window);
        QVERIFY(box != nullptr);
        QVERIFY(window.isVisible());
        answer(box, QMessageBox::RejectRole)->click();
        QTest::qWait(100);
        QVERIFY(window.isVisible() && window.recording()->running());
        QTRY_VERIFY_WITH_TIMEOUT(window.findChild<QMessageBox*>(QStringLiteral("stopRecording")) == nullptr, longWait);
        box = asked(window);
        QVERIFY(box != nullptr);
        answer(box, QMessageBox::AcceptRole)->click();
        QTRY_VERIFY_WITH_TIMEOUT(!window.isVisible(), longWait);
        const auto runs = runsOf(path);
        QCOMPARE(runs.size(), std::size_t(2));
        QVERIFY(runs[1].steps >= 2);
        QVERIFY(runs[1].state == RunState::Interrupted);
        // The next start opens it without a message.
        MainWindow again;
        QVERIFY(WindowFixture::show(again));
        again.session()->restore(stateOf(window));
        QVERIFY(WindowFixture::settle(again));
        QVERIFY2(again.bannerText().isEmpty(), qPrintable(again.bannerText()));
        QCOMPARE(again.runs()->refs().size(), std::size_t(2));
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
            window.startRecording(endless(), path, false);
            QTRY_VERIFY_WITH_TIMEOUT(window.recording()->done() >= 2 && window.mode() == MainWindow::Mode::Run && window.isScratch(window.shownRef().file), longWait);
            state = window.session()->state();
            QCOMPARE(state.value(QStringLiteral("files")).toStringList(), QStringList{path});
            window.actions()[ActionId::CancelRecording]->trigger();
            QTRY_VERIFY_WITH_TIMEOUT(!window.recording()->running(), longWait);
            // as a killed window leaves it: the file in its temporary folder
            const QString file = state.value(QStringLiteral("recording")).toStringList().value(0);
            scratch = m_fixture->dir.filePath(QStringLiteral("left/recording-1.stagewright"));
            QVERIFY(QDir().mkpath(QFileInfo(scratch).path()));
            QTRY_VERIFY_WITH_TIMEOUT(window.settled(), longWait);
            QVERIFY(!QFileInfo::exists(file)); // adopted here; replaced by another one
            QVERIFY(QFile::copy(path, scratch));
        }
        const std::size_t before = runsOf(path).size();
        state[QStringLiteral("recording")] = QStringList{scratch, path};
        MainWindow again;
        QVERIFY(WindowFixture::show(again));
        again.session()->restore(state);
        QTRY_COMPARE_WITH_TIMEOUT(runsOf(path).size(), 2 * before, longWait);
        QTRY_VERIFY2_WITH_TIMEOUT(again.bannerText().contains(QStringLiteral("during a recording")), qPrintable(again.bannerText()), longWait);
        QVERIFY(!QFileInfo::exists(scratch));
    }

    // What a killed window left in the temporary folder goes at the next start; a recording in it and what a living one has do not.
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
            for (const QString& file : {path + QStringLiteral("/1/1f1b (edited)"), path + QStringLiteral("/owner.lock")}) {
                QFile made(file);
                if (made.open(QIODevice::WriteOnly) && file.endsWith(QLatin1String("lock"))) made.write(owner + "\nstagewright\n" + QSysInfo::machineHostName().toUtf8() + "\n");
            }
            return path;
        };
        const QString killed = folder("killed", dead), recorded = folder("recorded", dead), unlocked = folder("beingmade", dead);
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

    // Cancelled in its warm-up: a good file stays as it was; a new one is not made; nothing says that runs were recorded.
    void warmUpAloneIsNotKept()
    {
        const QString good = m_fixture->file("good.stagewright", {"1f1b"});
        const QString fresh = m_fixture->dir.filePath(QStringLiteral("new.stagewright"));
        MainWindow window;
        QVERIFY(WindowFixture::open(window, {good}));
        for (const QString& path : {good, fresh}) {
            window.startRecording(endless(1000000), path, path == fresh);
            QTRY_VERIFY_WITH_TIMEOUT(window.recording()->done() >= 2, longWait);
            window.actions()[ActionId::CancelRecording]->trigger();
            QTRY_VERIFY_WITH_TIMEOUT(!window.recording()->running() && window.settled(), longWait);
            QVERIFY2(window.bannerText().contains(QStringLiteral("nothing was kept")), qPrintable(window.bannerText()));
        }
        QCOMPARE(runsOf(good).size(), std::size_t(1));
        QVERIFY(!QFileInfo::exists(fresh));
        QCOMPARE(window.runs()->files(), QStringList{good});
        QCOMPARE(window.shownRef(), (RunRef{good, 1})); // not an empty page beside the list
        QVERIFY(window.mode() == MainWindow::Mode::Run);
    }

    void namesDoNotCollide()
    {
        const QString path = m_fixture->dir.filePath(QStringLiteral("names.stagewright"));
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        for (const bool isNew : {true, false}) {
            window.startRecording(WindowFixture::tinyRecording(), path, isNew);
            QTRY_VERIFY_WITH_TIMEOUT(!window.recording()->running() && window.settled(), longWait);
        }
        const auto runs = runsOf(path);
        QCOMPARE(runs.size(), std::size_t(2));
        QCOMPARE(runs[1].name, runs[0].name + " (2)");
        QCOMPARE(runTitle(runs[1]), runTitle(runs[0]) + QStringLiteral(" (2)"));
        // A new recording never replaces a file.
        window.startRecording(WindowFixture::tinyRecording(), path, true);
        QTRY_VERIFY_WITH_TIMEOUT(!window.recording()->running() && window.settled(), longWait);
        QCOMPARE(runsOf(path).size(), std::size_t(2));
        QVERIFY(window.bannerText().contains(QStringLiteral("names-2.stagewright")));
    }

    // A start shows a run if there is one, restores in-memory runs, and reports missing files once.
    void aStartContradictsNothing()
    {
        const QString path = m_fixture->file("runs.stagewright", {"1f1b", "zb-h1"});
        QVariantMap state;
        {
            MainWindow window;
            QVERIFY(WindowFixture::open(window, {path}));
            window.newFromLibrary(QStringLiteral("gpipe"), Shape(3, 5));
            QVERIFY(WindowFixture::settle(window));
            QVERIFY(window.library()->isSimulated(window.shownRef().file));
            window.library()->open(m_fixture->dir.filePath(QStringLiteral("unreadable.stagewright")));
            QFile bad(m_fixture->dir.filePath(QStringLiteral("bad.stagewright")));
            QVERIFY(bad.open(QIODevice::WriteOnly) && bad.write("not a run file, whatever its name says") > 0);
            bad.close();
            window.openFiles({bad.fileName()});
            QVERIFY(WindowFixture::settle(window));
            QVERIFY(!window.bannerText().isEmpty());
            state = stateOf(window);
            QCOMPARE(state.value(QStringLiteral("files")).toStringList(), QStringList{path}); // unreadable files were reported
        }
        { // the run that was shown is in memory only
            MainWindow again;
            QVERIFY(WindowFixture::show(again));
            again.session()->restore(state);
            QTRY_VERIFY_WITH_TIMEOUT(again.settled() && again.mode() == MainWindow::Mode::Run, longWait);
            QVERIFY2(again.bannerText().isEmpty(), qPrintable(again.bannerText()));
            QVERIFY(again.library()->isSimulated(again.shownRef().file));
            QCOMPARE(again.shownView()->run->info.ranks, 3);
            QCOMPARE(again.runs()->refs().size(), std::size_t(3));
        }
        { // it is gone: shows the first of the others, not the welcome page
            QVERIFY(QFile::remove(SessionController::folder() + QLatin1Char('/') + state.value(QStringLiteral("id")).toString() + QStringLiteral(".simulated")));
            MainWindow again;
            QVERIFY(WindowFixture::show(again));
            again.session()->restore(state);
            QTRY_VERIFY_WITH_TIMEOUT(again.settled() && again.mode() == MainWindow::Mode::Run, longWait);
            QCOMPARE(again.shownRef(), (RunRef{path, 1}));
        }
        MainWindow listed; // runs are listed, none is shown
        QVERIFY(WindowFixture::show(listed));
        QVERIFY(welcomeText(listed).contains(QStringLiteral("Start in one of these ways")));
        listed.library()->open(path);
        QTRY_COMPARE_WITH_TIMEOUT(listed.runs()->refs().size(), std::size_t(2), longWait);
        QVERIFY2(welcomeText(listed).contains(QStringLiteral("No run is shown")) && !welcomeText(listed).contains(QStringLiteral("Start in one of these ways")), qPrintable(welcomeText(listed)));
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
            window.enterEdit();
            QVERIFY(WindowFixture::settle(window));
            QVERIFY(window.editor()->apply(QStringLiteral("move"), moveOps(window.editor()->schedule(), {{0, 1}}, 1)));
            edited = window.editor()->schedule();
            state = stateOf(window);
            window.edit()->closing();
        }
        MainWindow again;
        QVERIFY(WindowFixture::show(again));
        QVERIFY(again.edit()->offersRecovery());
        again.session()->restore(state);
        QTRY_VERIFY_WITH_TIMEOUT(again.settled() && again.mode() == MainWindow::Mode::Run, longWait);
        QTest::qWait(100);
        QVERIFY(again.mode() == MainWindow::Mode::Run);
        for (QPushButton* button : again.edit()->recovery()->findChildren<QPushButton*>())
            if (button->text().contains(QStringLiteral("Recover"))) button->click();
        QTRY_VERIFY_WITH_TIMEOUT(again.mode() == MainWindow::Mode::Edit && again.settled(), longWait);
        QVERIFY(again.editor()->schedule().order == edited.order);
        QCOMPARE(again.shownRef(), (RunRef{path, 1}));
        QCOMPARE(again.runs()->refs().size(), std::size_t(1));
        again.leaveEdit();
    }

    // The field's example works with a split B, and the answer is in the field.
    void theFieldAnswersBesideItself()
    {
        const QString path = m_fixture->file("runs.stagewright", {"zb-h1"});
        MainWindow window;
        QVERIFY(WindowFixture::open(window, {path}));
        FindField* field = window.findField();
        field->setFocus();
        QTest::keyClicks(field, QStringLiteral("rank:2 mb:5 B"));
        QTest::keyClick(field, Qt::Key_Return);
        QTRY_COMPARE_WITH_TIMEOUT(field->answer(), QStringLiteral("1 of 2"), longWait);
        const Timeline& timeline = *window.shownView()->run->timeline;
        QVERIFY(timeline.spans()[window.viewState()->selected().span].op.kind == OpKind::InputGrad);
        QTest::keyClick(field, Qt::Key_Return);
        QCOMPARE(field->answer(), QStringLiteral("2 of 2"));
        QVERIFY(timeline.spans()[window.viewState()->selected().span].op.kind == OpKind::WeightGrad);
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

    // Ctrl+click, once more, and a third time: three runs with their own letters everywhere, one table with a column each.
    void ctrlClicksAddRuns()
    {
        const QString path = m_fixture->file("runs.stagewright", {"gpipe", "1f1b", "zb-h1", "zb-h2", "zbv"});
        MainWindow window;
        QVERIFY(WindowFixture::open(window, {path}));
        auto* panel = window.findChild<RunsPanel*>();
        const auto click = [&](qint64 id) {
            const QRect row = panel->tree()->visualRect(window.runs()->indexOf({path, id}));
            QTest::mouseMove(panel->tree()->viewport(), row.center());
            emit panel->compareAsked({path, id}); // the offscreen platform knows no pressed modifier
        };
        click(2);
        click(3); // before the first is on screen
        QTRY_VERIFY_WITH_TIMEOUT(window.settled() && window.mode() == MainWindow::Mode::Compare, longWait);
        QCOMPARE(window.timelineView()->panels().size(), std::size_t(3));
        for (int i = 0; i < 3; ++i) QCOMPARE(window.runs()->indexOf({path, i + 1}).data(RunsModel::MarkRole).toString(), QString(QChar(u'A' + i)));
        const QString text = window.comparePanel()->plainText();
        QVERIFY2(text.contains(QStringLiteral("Differences from A")), qPrintable(text));
        QVERIFY2(text.contains(QRegularExpression(QStringLiteral("\\bB is [0-9.]+ % (faster|slower)"))) || text.contains(QStringLiteral("A and B take the same time")), qPrintable(text));
        QVERIFY2(text.contains(QRegularExpression(QStringLiteral("\\bC is [0-9.]+ % (faster|slower)"))), qPrintable(text));
        // The memory curves show A and the compared run, with its own letter.
        QVERIFY2(window.memoryView()->subtitle().contains(QStringLiteral("solid = C")) && window.memoryView()->subtitle().contains(QStringLiteral("dashed grey = A")), qPrintable(window.memoryView()->subtitle()));
        window.actions()[ActionId::NextCompared]->trigger();
        QVERIFY(window.memoryView()->subtitle().contains(QStringLiteral("solid = B")));
        click(4);
        QTRY_VERIFY_WITH_TIMEOUT(window.settled() && window.timelineView()->panels().size() == 4, longWait);
        click(5); // no room
        QVERIFY(window.settled());
        QVERIFY(window.bannerText().contains(QStringLiteral("At most four runs")));
        click(2); // off again
        QTRY_VERIFY_WITH_TIMEOUT(window.settled() && window.timelineView()->panels().size() == 3, longWait);
        QCOMPARE(window.runs()->indexOf({path, 3}).data(RunsModel::MarkRole).toString(), QStringLiteral("B"));
        // All of it is restored.
        const QVariantMap state = stateOf(window);
        MainWindow again;
        QVERIFY(WindowFixture::show(again));
        again.session()->restore(state);
        QTRY_VERIFY_WITH_TIMEOUT(again.settled() && again.mode() == MainWindow::Mode::Compare, longWait);
        QCOMPARE(again.timelineView()->panels().size(), std::size_t(3));
    }

    // Any run of the comparison is shown alone by a click, also the one that the list has as current.
    void aClickOnARunOfTheComparisonShowsItAlone()
    {
        const QString path = m_fixture->file("runs.stagewright", {"1f1b", "zb-h1"});
        MainWindow window;
        QVERIFY(WindowFixture::open(window, {path}));
        auto* tree = window.findChild<QTreeView*>();
        for (const int row : {0, 1}) {
            window.showCompare({path, 1}, {path, 2});
            QTRY_VERIFY_WITH_TIMEOUT(window.settled() && window.mode() == MainWindow::Mode::Compare, longWait);
            const QModelIndex run = tree->model()->index(row, 0, tree->model()->index(0, 0));
            QTest::mouseClick(tree->viewport(), Qt::LeftButton, {}, tree->visualRect(run).center());
            QTRY_VERIFY_WITH_TIMEOUT(window.settled() && window.mode() == MainWindow::Mode::Run, longWait);
            QCOMPARE(window.shownRef(), (RunRef{path, row + 1}));
        }
        // A click on the edited run does not leave edit mode.
        window.enterEdit();
        const QModelIndex edited = tree->currentIndex();
        QTest::mouseClick(tree->viewport(), Qt::LeftButton, {}, tree->visualRect(edited).center());
        QVERIFY(WindowFixture::settle(window));
        QCOMPARE(window.mode(), MainWindow::Mode::Edit);
    }

    // Cut ops wait in the tray; the text keeps its lines.
    void theTrayLeavesRoom()
    {
        const QString path = m_fixture->file("runs.stagewright", {"zb-h1"}, 4, 8);
        MainWindow window;
        QVERIFY(WindowFixture::open(window, {path}, {1280, 800}));
        window.enterEdit();
        QVERIFY(WindowFixture::settle(window));
        QTest::qWait(50);
        const int before = window.edit()->text()->height();
        window.edit()->choose({{0, 3}, {1, 3}, {2, 3}});
        window.actions()[ActionId::RemoveOps]->trigger();
        QVERIFY(WindowFixture::settle(window));
        QTest::qWait(50);
        QVERIFY(window.edit()->tray()->isVisible());
        QVERIFY2(window.edit()->text()->height() >= before - 4, qPrintable(QStringLiteral("%1 of %2").arg(window.edit()->text()->height()).arg(before)));
        QVERIFY(window.edit()->tray()->height() >= window.edit()->tray()->heightFor(window.edit()->tray()->width()) - 4);
        window.editor()->undoStack()->undo();
        QTest::qWait(50);
        QVERIFY(std::abs(window.edit()->text()->height() - before) <= 6);
        window.leaveEdit();
    }

    // Missing I and W are reported and taken from a run of the file that has them.
    void splitBackwardsArePredictedFromAnotherRun()
    {
        const QString path = m_fixture->dir.filePath(QStringLiteral("split.stagewright"));
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        RecordSettings settings = WindowFixture::tinyRecording();
        settings.schedules = {QStringLiteral("1f1b")};
        settings.steps = 4;
        window.startRecording(settings, path, true);
        QTRY_VERIFY_WITH_TIMEOUT(!window.recording()->running() && window.settled(), longWait);
        const auto split = [&] {
            window.showRun({path, 1});
            QTRY_VERIFY_WITH_TIMEOUT(window.settled() && window.shownRef() == (RunRef{path, 1}), longWait);
            window.enterEdit();
            QVERIFY(WindowFixture::settle(window));
            QVERIFY2(!window.editPanel()->plainText().contains(QStringLiteral("I and W")), qPrintable(window.editPanel()->plainText()));
            QVERIFY(window.editor()->apply(QStringLiteral("split"), splitBackward(window.editor()->schedule(), allPositions(window.editor()->schedule(), 1))));
        };
        split();
        const auto share = [](const CostModel& costs) {
            const auto input = static_cast<double>(costs.duration(OpKind::InputGrad, 0, -1));
            return input / (input + static_cast<double>(costs.duration(OpKind::WeightGrad, 0, -1)));
        };
        const auto freed = [](const CostModel& costs) { return static_cast<double>(costs.memory[0].freedAtInput) / static_cast<double>(costs.memory[0].activation); };
        // No other run is there yet: times from the layers of the run itself, memory from the model's shape, as simulate --costs-from has it.
        QVERIFY2(window.editPanel()->plainText().contains(QStringLiteral("B is split as in the run's layers")), qPrintable(window.editPanel()->plainText()));
        QVERIFY2(window.editPanel()->plainText().contains(QStringLiteral("What I frees is as in the shape of the model")), qPrintable(window.editPanel()->plainText()));
        const CostModel guessed = window.editor()->costs();
        QVERIFY(freed(guessed) != 0);
        const auto first = window.library()->cachedRun({path, 1});
        QVERIFY(first && first->costs && !knowsSplit(*first->costs));
        // Without its layers the times are from the shape too.
        CostModel bare = *first->costs;
        bare.layers.clear();
        const BackwardCosts shaped = withBackward(bare, *first, 2, {});
        QVERIFY(shaped.use.times && shaped.sources[*shaped.use.times].basis == SplitBasis::Shape);
        QVERIFY2(std::abs(share(shaped.costs) - 0.5) > 0.005, qPrintable(QString::number(share(shaped.costs))));
        QCOMPARE(freed(shaped.costs), freed(guessed));
        window.editor()->revert();
        window.leaveEdit();
        settings.schedules = {QStringLiteral("zb-h1")};
        window.startRecording(settings, path, false);
        QTRY_VERIFY_WITH_TIMEOUT(!window.recording()->running() && window.settled(), longWait);
        split();
        QVERIFY2(window.editPanel()->plainText().contains(QStringLiteral("What I frees is as in run 2, ZB-H1")), qPrintable(window.editPanel()->plainText()));
        const CostModel& taken = window.editor()->costs();
        const auto measured = window.library()->cachedRun({path, 2});
        QVERIFY(measured && measured->costs);
        QVERIFY(share(taken) == share(guessed));
        QVERIFY(std::abs(freed(taken) - freed(*measured->costs)) < 1e-3); // what I adds or frees was not known either
        window.editor()->revert();
        window.leaveEdit();
    }
};

QTEST_MAIN(TestStartAndStop)
#include "tst_start_and_stop.moc"
