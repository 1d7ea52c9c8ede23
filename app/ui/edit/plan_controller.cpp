#include "app/ui/edit/plan_controller.h"

#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "widgets/literals.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

std::vector<ActionEntry> PlanController::actionTable()
{
    return {
        item("comparePlan", ActionGroup::AnalyseCompare, u"Compare with the p&lan"_s, "Ctrl+Alt+P",
             u"A measured run against its own schedule, simulated with the costs fitted from it: the first op "
             "that deviates, and why"_s,
             {.at = 10}),
    };
}

PlanController::PlanController(Workspace& workspace)
    : Feature(workspace), m_planning(workspace.jobs()), m_deviating(workspace.jobs())
{
    QAction* action = workspace.actions()["comparePlan"];
    connect(action, &QAction::triggered, this, [this] { compareWithPlan(m_workspace.shown().ref()); });
    connect(&workspace, &Workspace::actionsRefreshed, this, [this, action] {
        const auto view = m_workspace.shown().view();
        action->setEnabled(m_workspace.shown().mode() == Shown::Mode::Run && view && !view->partial && !view->excerpt &&
                           view->run->info.provenance != Provenance::Simulated);
    });
    connect(&workspace.shown(), &Shown::runShown, this, &PlanController::shown);
}

void PlanController::compareWithPlan(const RunRef& measured)
{
    if (!measured.valid()) return;
    m_measured = m_plan = {};
    m_workspace.library()->request(
        measured, -1, m_planning.expect([this, measured](Result<std::shared_ptr<const RunView>> view) {
            if (!view) return m_workspace.banner()->showError(QString(), view.error());
            m_planning.start(
                [run = (*view)->run]() -> Result<std::shared_ptr<Run>> {
                    STAGEWRIGHT_TRY(auto plan, planOf(*run));
                    return std::make_shared<Run>(std::move(plan));
                },
                [this, measured](Result<std::shared_ptr<Run>> plan) {
                    if (!plan) return m_workspace.banner()->showRefusal(u"no plan to compare with"_s, plan.error());
                    m_workspace.banner()->clear();
                    m_plan = m_workspace.library()->addSimulated(std::move(**plan));
                    m_measured = measured;
                    m_workspace.feature<RunComparing>()->show({m_plan, m_measured});
                });
        }));
}

void PlanController::shown()
{
    if (!m_plan.valid() || m_workspace.shown().mode() != Shown::Mode::Compare) return;
    const auto& views = m_workspace.feature<RunComparing>()->shown();
    if (views.size() != 2 || !(views[0]->ref == m_plan) || !(views[1]->ref == m_measured)) return;
    m_plan = m_measured = {};
    m_deviating.start(
        [plan = views[0]->run, run = views[1]->run, comparison = m_workspace.shown().comparison()] {
            return firstDeviation(*plan, *run, *comparison);
        },
        [this, of = m_workspace.shown().comparison()](const std::optional<Deviation>& deviation) {
            if (m_workspace.shown().mode() == Shown::Mode::Compare && m_workspace.shown().comparison() == of)
                tell(deviation);
        });
}

void PlanController::tell(const std::optional<Deviation>& deviation)
{
    m_deviation = deviation;
    if (!deviation) {
        m_workspace.banner()->showNote(u"No op starts or ends more than 2 % of the step away from its plan"_s);
        return;
    }
    const SpanRef ref{1, deviation->op.b};
    m_workspace.viewState()->select(ref);
    m_workspace.views().timeline->selection().show(ref);
    m_workspace.banner()->showNote(
        u"First deviation from the plan: %1"_s.arg(QString::fromStdString(deviation->sentence)));
}

std::vector<ShowEntry> PlanController::showTable()
{
    return {
        {"plan", 290,
         [](const ShowRequest& request) {
             request.workspace.actions()["comparePlan"]->trigger();
             request.settle();
         }},
    };
}

FeatureEntry planFeature() { return featureEntry<PlanController>(); }

} // namespace stagewright
