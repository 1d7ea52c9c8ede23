#include "app/ui/explain/findings_controller.h"

#include <algorithm>

#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "traces/report/run_report.h"
#include "widgets/edit/schedule_editor.h"
#include "widgets/literals.h"
#include "widgets/panel/side_panel.h"
#include "widgets/record/record_dialog.h"

namespace stagewright {

FindingsController::FindingsController(Workspace& workspace) : Feature(workspace)
{
    connect(workspace.views().side, &SidePanel::leverAsked, this,
            [this](const QString& lever) { onItsRun([this, lever] { act(lever); }); });
    connect(workspace.views().side, &SidePanel::spanAsked, &workspace.shown(), &Shown::chooseOp);
    connect(workspace.views().side, &SidePanel::allStepsAsked, this, [this] {
        if (QAction* all = m_workspace.actions()["allSteps"]; all->isEnabled() && !all->isChecked()) all->trigger();
    });
    connect(workspace.views().side, &SidePanel::planAsked, this, [this] { onItsRun([this] { plan(); }); });
}

void FindingsController::onItsRun(const std::function<void()>& act)
{
    if (m_workspace.shown().mode() != Shown::Mode::Compare) return act();
    if (const auto view = m_workspace.feature<RunComparing>()->beside())
        m_workspace.shown().showRun(view->ref, view->step, act);
}

void FindingsController::plan()
{
    const auto& view = m_workspace.shown().view();
    const auto budget = m_workspace.shown().budget();
    const Bytes peak = view && view->figures && !view->figures->memory.empty() ? view->figures->largestPeak() : 0;
    m_workspace.feature<OrderPlanning>()->planOrder(budget ? budget : peak > 0 ? std::optional(peak) : std::nullopt);
}

void FindingsController::act(const QString& lever)
{
    const auto& view = m_workspace.shown().view();
    if (m_workspace.shown().mode() != Shown::Mode::Run || !view || !view->figures || !view->figures->levers) return;
    const std::vector<Lever>& all = view->figures->levers->levers;
    const auto found = std::find_if(all.begin(), all.end(),
                                    [name = lever.toStdString()](const Lever& one) { return one.name == name; });
    if (found != all.end()) perform(Lever(*found)); // the panel's may go
}

void FindingsController::perform(const Lever& lever)
{
    switch (lever.kind) {
    case LeverKind::Rank: // "rank:2" is a question of the search, too
        return m_workspace.feature<OpFinding>()->find(QString::fromStdString(lever.name));
    case LeverKind::Stages:
        if (RecordDialog* dialog = lever.layers.empty() ? nullptr : m_workspace.feature<Recording>()->recordAgain()) {
            Setup setup = dialog->setup();
            setup.stageLayers = lever.layers;
            dialog->setSetup(setup);
        }
        return;
    case LeverKind::Order: return editEarliest();
    case LeverKind::Cap: return m_workspace.feature<OrderPlanning>()->planOrder(std::nullopt);
    default:
        if (const std::string changes = whatIfOf(lever); !changes.empty())
            m_workspace.feature<WhatIfAsking>()->askWhatIf(QString::fromStdString(changes));
    }
}

void FindingsController::editEarliest()
{
    m_workspace.feature<OrderEditing>()->enterEdit();
    if (m_workspace.shown().mode() != Shown::Mode::Edit) return;
    m_workspace.actions()["snapAll"]->trigger(); // what each rank has ready first
    m_workspace.actions()["ghostOriginal"]->setChecked(true);
}

FeatureEntry findingsFeature() { return featureEntry<FindingsController>(); }

} // namespace stagewright
