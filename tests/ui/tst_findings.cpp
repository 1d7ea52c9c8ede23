// From a finding to its fix, in the real window: levers are buttons, the planner's order becomes one change of an edit,
// a run is recorded again under what it was recorded under, and all that is simulated of a run has one time.
#include <QCheckBox>
#include <QLineEdit>
#include <QProcess>
#include <QPushButton>
#include <QSpinBox>

#include "app/ui/edit/planner_controller.h"
#include "app/ui/edit/planner_panel.h"
#include "schedules/execute/simulate.h"
#include "schedules/plan/plan_request.h"
#include "tests/ui/window_fixture.h"
#include "traces/fit/residuals.h"
#include "traces/run/run_facts.h"
#include "widgets/record/record_dialog.h"

using namespace stagewright;

class TestFindings : public WindowTest {
    Q_OBJECT

    void open(const QString& file)
    {
        m_window->workspace().feature<FileOpening>()->openFiles({file});
        QVERIFY(WindowFixture::settle(*m_window));
    }
    QPushButton* button(const QString& begin) const
    {
        for (auto* found : m_window->workspace().views().side->findChildren<QPushButton*>())
            if (found->text().startsWith(begin)) return found;
        return nullptr;
    }
    // A training with a slow rank and slow links, by the program built beside this one.
    QString slowRun() const
    {
        const QString file = m_fixture->dir.filePath(QStringLiteral("slow.stagewright"));
        QProcess record;
        record.start(QString::fromLocal8Bit(qgetenv("STAGEWRIGHT_PROGRAM")), {"record",
                                                                              "-s",
                                                                              "1f1b",
                                                                              "-p",
                                                                              "2",
                                                                              "-m",
                                                                              "4",
                                                                              "--model",
                                                                              "layers=4,hidden=32,heads=2,seq=16",
                                                                              "--microbatch-size",
                                                                              "1",
                                                                              "--steps",
                                                                              "4",
                                                                              "--clock",
                                                                              "virtual",
                                                                              "--perturb",
                                                                              "rank=1:1.5",
                                                                              "--link",
                                                                              "100us,100MB/s",
                                                                              "-o",
                                                                              file});
        return record.waitForFinished(60000) && record.exitCode() == 0 ? file : QString();
    }

private slots:
    void leversAreButtons()
    {
        open(m_fixture->file("runs.stagewright", {"1f1b"}));
        QPushButton* order = button(QStringLiteral("Every rank runs what is ready first"));
        QVERIFY(order != nullptr);
        QVERIFY2(order->toolTip().contains(QStringLiteral("Opens this order as an edit")),
                 qPrintable(order->toolTip()));
        for (const QString& line : order->toolTip().split(QLatin1Char('\n')))
            QVERIFY2(line.size() <= 80, qPrintable(line));
        QVERIFY(order->focusPolicy() & Qt::TabFocus);
        const Nanos gain = [&] {
            for (const Lever& lever : m_window->workspace().shown().view()->figures->levers->levers)
                if (lever.kind == LeverKind::Order) return lever.gain;
            return Nanos{0};
        }();
        QVERIFY(gain > 0);
        order->click();
        QTRY_VERIFY(m_window->workspace().shown().mode() == Shown::Mode::Edit);
        ScheduleEditor& editor = m_window->workspace().feature<OrderEditing>()->editor();
        QTRY_VERIFY(editor.changed());
        // the edit gains what the lever said, and the original is outlined
        QCOMPARE(editor.originalFigures().makespan - editor.figures().makespan, gain);
        QVERIFY(m_window->workspace().actions()["ghostOriginal"]->isChecked());
        m_window->workspace().actions()["undo"]->trigger();
        QVERIFY(!editor.changed());
    }

    // Beside other runs they act on the run of the panel, which is then shown alone: A, or whose op is selected.
    void leversActOnTheRunOfAComparison()
    {
        const QString file = m_fixture->file("runs.stagewright", {"gpipe", "1f1b"});
        open(file);
        for (const int of : {0, 1}) {
            m_window->workspace().feature<RunComparing>()->show({{file, 1}, {file, 2}});
            QVERIFY(WindowFixture::settle(*m_window));
            QTRY_VERIFY(m_window->workspace().shown().mode() == Shown::Mode::Compare);
            m_window->workspace().viewState()->select(of == 0 ? SpanRef{} : SpanRef{1, 0});
            QVERIFY(WindowFixture::settle(*m_window));
            QPushButton* links = button(QStringLiteral("Messages that arrive instantly"));
            QVERIFY(links != nullptr && links->isEnabled());
            links->click();
            QTRY_VERIFY(m_window->workspace().shown().tool() == Shown::Tool::WhatIf);
            QVERIFY(WindowFixture::settle(*m_window));
            QCOMPARE(m_window->workspace().shown().ref(), (RunRef{file, of + 1}));
            QCOMPARE(m_window->workspace().views().timeline->panels().size(), std::size_t{2});
        }
        // so does the planner
        m_window->workspace().feature<RunComparing>()->show({{file, 1}, {file, 2}});
        QVERIFY(WindowFixture::settle(*m_window));
        QPushButton* plan = button(QStringLiteral("Plan a better order"));
        QVERIFY(plan != nullptr);
        plan->click();
        QTRY_VERIFY(m_window->workspace().feature<PlannerController>()->panel() != nullptr);
        QCOMPARE(m_window->workspace().shown().ref(), (RunRef{file, 1}));
        m_window->workspace().feature<PlannerController>()->panel()->reject();
    }

    // Messages that arrive instantly are a what-if.
    void aLeverOpensAsAWhatIf()
    {
        open(m_fixture->file("runs.stagewright", {"1f1b"}));
        QPushButton* links = button(QStringLiteral("Messages that arrive instantly"));
        QVERIFY(links != nullptr);
        links->click();
        QTRY_VERIFY(m_window->workspace().shown().tool() == Shown::Tool::WhatIf);
        QVERIFY(WindowFixture::settle(*m_window));
        const auto& levers = m_window->workspace().shown().view()->figures->levers;
        const auto panels = m_window->workspace().views().timeline->panels();
        QCOMPARE(panels.size(), std::size_t{2});
        QCOMPARE(panels[0]->bubbles->makespan(), *levers->simulated - levers->behind);
        for (const Lever& lever : levers->levers)
            if (lever.kind == LeverKind::Links) QCOMPARE(panels[1]->bubbles->makespan(), *lever.makespan);
    }

    void thePlannersOrderIsOneChangeOfAnEdit()
    {
        open(m_fixture->file("runs.stagewright", {"gpipe"}, 3, 4));
        QAction* action = m_window->workspace().actions()["planOrder"];
        QVERIFY(action->isEnabled());
        action->trigger();
        PlannerPanel* panel = m_window->workspace().feature<PlannerController>()->panel();
        QVERIFY(panel != nullptr && panel->isVisible());
        const auto child = [panel](const QString& text) {
            for (auto* one : panel->findChildren<QPushButton*>())
                if (one->text() == text) return one;
            return static_cast<QPushButton*>(nullptr);
        };
        QVERIFY(!child(QStringLiteral("Edit with this order"))->isEnabled());
        panel->findChild<QLineEdit*>(QStringLiteral("planCap"))->setText(QStringLiteral("nonsense"));
        child(QStringLiteral("Search"))->click();
        QVERIFY2(panel->plainText().contains(QStringLiteral("nonsense")), qPrintable(panel->plainText()));
        panel->findChild<QLineEdit*>(QStringLiteral("planCap"))->setText(QStringLiteral("2 microbatches"));
        panel->findChild<QSpinBox*>(QStringLiteral("planSeconds"))->setValue(20);
        child(QStringLiteral("Search"))->click();
        QVERIFY(panel->searching() && child(QStringLiteral("Stop"))->isVisible());
        QTRY_VERIFY_WITH_TIMEOUT(!panel->searching(), 60000);
        const QString said = panel->plainText();
        QVERIFY2(said.contains(QStringLiteral("no order within the cap is shorter"), Qt::CaseInsensitive) &&
                     said.contains(QStringLiteral("Step time")) && said.contains(QStringLiteral("Peak activation")),
                 qPrintable(said));
        child(QStringLiteral("Edit with this order"))->click();
        QTRY_VERIFY(m_window->workspace().shown().mode() == Shown::Mode::Edit);
        ScheduleEditor& editor = m_window->workspace().feature<OrderEditing>()->editor();
        QVERIFY(editor.changed() && editor.valid());
        QVERIFY(editor.figures().peakActivation <= 2 * editor.costs().memoryUnit);
        QVERIFY(!editor.schedule().splitsBackward()); // GPipe's backwards stay whole
        QCOMPARE(editor.undoStack()->count(), 1);
        QVERIFY(m_window->workspace().actions()["ghostOriginal"]->isChecked());
        m_window->workspace().actions()["undo"]->trigger();
        QVERIFY(!editor.changed());
        // in edit mode it plans the order that is edited
        action->trigger();
        QVERIFY(m_window->workspace().feature<PlannerController>()->panel() != nullptr);
        m_window->workspace().feature<PlannerController>()->panel()->reject();
    }

    void aSearchCanBeStopped()
    {
        open(m_fixture->file("runs.stagewright", {"1f1b"}, 8, 24));
        m_window->workspace().feature<OrderPlanning>()->planOrder(std::nullopt);
        PlannerPanel* panel = m_window->workspace().feature<PlannerController>()->panel();
        QVERIFY(panel != nullptr);
        panel->findChild<QSpinBox*>(QStringLiteral("planSeconds"))->setValue(3600);
        emit panel->searchAsked();
        QVERIFY(panel->searching());
        emit panel->stopAsked();
        QTRY_VERIFY_WITH_TIMEOUT(!panel->searching(), 60000);
        QVERIFY2(panel->plainText().contains(QStringLiteral("stopped")) ||
                     panel->plainText().contains(QStringLiteral("Proven")),
                 qPrintable(panel->plainText()));
    }

    // Why an order can't be planned is said when the dialog opens.
    void anOrderThatCantBePlannedSaysWhy()
    {
        open(m_fixture->file("runs.stagewright", {"chimera"}));
        m_window->workspace().feature<OrderPlanning>()->planOrder(std::nullopt);
        PlannerPanel* panel = m_window->workspace().feature<PlannerController>()->panel();
        QVERIFY(panel != nullptr);
        QVERIFY2(panel->plainText().contains(QStringLiteral("The planner needs one stage per rank")),
                 qPrintable(panel->plainText()));
    }

    // Levers, what-ifs, residuals and edits of a run start from one simulated time.
    void oneRunHasOneSimulatedTime()
    {
        if (!WindowFixture::recordsWithBuiltProgram()) QSKIP("stagewright is not built");
        const QString file = slowRun();
        QVERIFY(!file.isEmpty());
        open(file);
        const auto view = m_window->workspace().shown().view();
        QVERIFY(view && view->figures && view->figures->levers && view->figures->levers->simulated);
        const LeverTable& levers = *view->figures->levers;
        const Nanos ops = *levers.simulated - levers.behind;
        QVERIFY(levers.behind > 0); // gradient norm and optimizer
        QCOMPARE(residualsOf(*view->run, *view->run->costs)->predictedStep, ops);
        m_window->workspace().shown().setTool(Shown::Tool::WhatIf);
        QVERIFY(WindowFixture::settle(*m_window));
        QCOMPARE(m_window->workspace().views().timeline->panels()[0]->bubbles->makespan(), ops);
        m_window->workspace().shown().setTool(Shown::Tool::None);
        m_window->workspace().feature<OrderEditing>()->enterEdit();
        QCOMPARE(m_window->workspace().feature<OrderEditing>()->editor().originalFigures().makespan, ops);
    }

    // Run it and Record again keep what the run was recorded under, and so does the comparison with the original.
    void recordedAgainUnderTheSameConditions()
    {
        if (!WindowFixture::recordsWithBuiltProgram()) QSKIP("stagewright is not built");
        const QString file = slowRun();
        QVERIFY(!file.isEmpty());
        open(file);
        RecordDialog* dialog = m_window->workspace().feature<Recording>()->recordAgain();
        QVERIFY(dialog != nullptr);
        QCOMPARE(dialog->setup().perturb, std::vector<std::string>{"rank=1:1.5"});
        QCOMPARE(dialog->setup().schedules, std::vector<std::string>{"1f1b"});
        QVERIFY2(dialog->faultText().isEmpty(), qPrintable(dialog->faultText()));
        dialog->reject();
        QPushButton* rank = button(QStringLiteral("Rank 1 as fast as the others"));
        QVERIFY(rank != nullptr);
        m_window->workspace().feature<OrderEditing>()->enterEdit();
        ScheduleEditor& editor = m_window->workspace().feature<OrderEditing>()->editor();
        QVERIFY(editor.move({0, 2}, 1));
        QVERIFY(editor.valid());
        m_window->workspace().actions()["runEdited"]->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(m_window->workspace().shown().mode() == Shown::Mode::Compare &&
                                     m_window->workspace().settled() &&
                                     !m_window->workspace().feature<Recording>()->process()->running(),
                                 60000);
        const auto other = m_window->workspace().shown().other();
        QVERIFY(other != nullptr);
        QCOMPARE(configured(*other->run, "perturb"), std::string("rank=1:1.5"));
        QCOMPARE(configured(*other->run, "link"), configured(*m_window->workspace().shown().view()->run, "link"));
        for (const RunDifference& one : m_window->workspace().shown().comparison()->differences)
            QVERIFY2(one.key != "perturb" && one.key != "link_latency", one.key.c_str());
    }

    // Two runs called alike have different titles everywhere: by the disturbance, the file, or their number in it.
    void runsOfOneNameHaveDifferentTitles()
    {
        const QString one = m_fixture->file("one.stagewright", {"1f1b", "1f1b"}),
                      two = m_fixture->file("two.stagewright", {"1f1b"});
        m_window->workspace().feature<FileOpening>()->openFiles({one, two});
        QVERIFY(WindowFixture::settle(*m_window));
        const auto refs = m_window->workspace().runs()->refs();
        QCOMPARE(refs.size(), std::size_t{3});
        RunRef first, second;
        for (const RunRef& ref : refs) (ref.file == two ? second : first) = ref;
        m_window->workspace().feature<RunComparing>()->show({first, second});
        QVERIFY(WindowFixture::settle(*m_window));
        const auto panels = m_window->workspace().views().timeline->panels();
        QCOMPARE(panels.size(), std::size_t{2});
        QVERIFY2(panels[0]->name != panels[1]->name && panels[1]->name.contains(QStringLiteral("two")),
                 qPrintable(panels[0]->name + QStringLiteral(" and ") + panels[1]->name));
        QVERIFY2(m_window->windowTitle().contains(QStringLiteral("two")), qPrintable(m_window->windowTitle()));
        const PictureContent content = m_window->workspace().feature<ExportController>()->picture();
        QVERIFY2(content.title.contains(QStringLiteral("two")), qPrintable(content.title));
    }

    // The plan of a family without a split has whole backwards only, and the same ops as its schedule.
    void plansStayInTheirFamily()
    {
        const Schedule schedule = makeSchedule("gpipe", Shape(3, 4)).value();
        const CostModel costs = CostModel::uniform(schedule);
        const auto request = planRequestFor(schedule, costs, false);
        QVERIFY(request);
        const Plan found = plan(*request).value();
        const Schedule order = planInFamily(found.schedule, schedule, false);
        QCOMPARE(order.opCount(), schedule.opCount());
        const auto result = simulate(order, costs);
        QVERIFY(result);
        QCOMPARE(result->makespan, found.makespan);
        QVERIFY(!planRequestFor(makeSchedule("chimera", Shape(4, 8)).value(), costs, false));
    }
};

QTEST_MAIN(TestFindings)
#include "tst_findings.moc"
