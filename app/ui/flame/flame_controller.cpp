#include "app/ui/flame/flame_controller.h"

#include <algorithm>
#include <limits>

#include "app/ui/workspace/workspace.h"
#include "traces/analysis/analysis_registry.h"
#include "widgets/flame/flame_view.h"
#include "widgets/literals.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

std::vector<ActionEntry> FlameController::actionTable()
{
    return {
        item("flame", ActionGroup::AnalyseTools, u"&Flame graph"_s, {},
             u"Kernels by the named ranges that launched them, folded over the step or the selected area; "
             "ranges of the host where there are no kernels"_s,
             {.at = 30, .checkable = true}),
    };
}

FlameController::FlameController(Workspace& workspace) : FlameController(workspace, new FlameView) {}

FlameController::FlameController(Workspace& workspace, FlameView* flame)
    : DockOfStep(workspace, u"flameDock"_s, u"Flame graph"_s, flame, workspace.actions()["flame"],
                 [flame] { flame->setFocus(); }),
      m_flame(flame)
{
    connect(m_flame, &FlameView::spanChosen, this, &FlameController::choose);
    connect(workspace.viewState(), &ViewState::selectionChanged, this, &FlameController::fold);
    connect(&workspace, &Workspace::themeChanged, this, [this] { m_flame->setTheme(m_workspace.theme()); });
    m_flame->setTheme(workspace.theme());
    connect(&workspace.shown(), &Shown::runShown, this, &FlameController::putAway);
    connect(workspace.actions()["flame"], &QAction::triggered, this, [this] { m_away = false; });
}

// Where a run has nothing to fold the dock would be an empty third of the window: it comes back with one that has.
void FlameController::putAway()
{
    const auto view = m_workspace.shown().mode() == Shown::Mode::Run ? m_workspace.shown().view() : nullptr;
    if (!view || view == m_asked.lock()) return;
    const bool none = !findAnalysis("range_stacks")->unknown(*view->run).empty();
    if (none && !dock()->isHidden()) {
        m_away = true;
        dock()->hide();
        m_workspace.room().tell(u"The flame graph is away: this run has no kernels and no ranges."_s, 6000);
    } else if (!none && m_away) {
        m_away = false;
        dock()->show();
    }
    m_asked = view;
}

void FlameController::compute(const std::shared_ptr<const RunView>& view)
{
    m_view = view;
    fold();
}

void FlameController::fold()
{
    if (!m_view || dock()->isHidden()) return;
    if (m_job.waits([this] { fold(); })) return;
    struct Asked {
        Nanos begin = std::numeric_limits<Nanos>::min(), end = std::numeric_limits<Nanos>::max();
        std::vector<int> ranks;
        bool area = false;
    } asked;
    const auto& panels = m_workspace.views().timeline->panels();
    const auto& plan = m_workspace.views().timeline->scene().rows.plan;
    if (const auto areas = m_workspace.viewState()->areas();
        !areas.empty() && !panels.empty() && panels.front()->timeline == m_view->run->timeline && plan) {
        asked = {std::numeric_limits<Nanos>::max(), std::numeric_limits<Nanos>::min(), {}, true};
        for (const AreaSelection& area : areas) {
            asked.begin = std::min(asked.begin, area.range.begin + panels.front()->origin);
            asked.end = std::max(asked.end, area.range.end + panels.front()->origin);
            for (std::size_t i = 0; i < panels.front()->ranks.size(); ++i)
                if (const int at = plan->positionOf.front()[i]; at >= area.firstRow && at <= area.lastRow)
                    asked.ranks.push_back(panels.front()->ranks[i].rank);
        }
    }
    const QString about = asked.area        ? u"Selected area"_s
                          : m_view->excerpt ? u"Part in view"_s
                                            : u"Step %1"_s.arg(m_view->step + 1);
    m_job.start(
        [view = m_view, asked] {
            return std::make_shared<const RangeStacks>(
                foldRanges(*view->run->timeline, view->step, asked.begin, asked.end, asked.ranks));
        },
        [this, view = m_view, about, area = asked.area](const std::shared_ptr<const RangeStacks>& stacks) {
            const std::string unknown = findAnalysis("range_stacks")->unknown(*view->run);
            const QString reason = !unknown.empty() ? u"Nothing to fold: %1."_s.arg(QString::fromStdString(unknown))
                                   : area           ? u"The selected area has no kernels and no ranges."_s
                                                    : u"This step has no kernels and no ranges."_s;
            m_flame->setStacks(stacks, view->panel->units, about, reason);
        });
}

void FlameController::clear()
{
    m_view.reset();
    m_flame->setStacks(nullptr, {}, {}, u"No run is shown."_s);
}

std::vector<ShowEntry> FlameController::showTable()
{
    return {
        {"flame", 310,
         [](const ShowRequest& request) {
             request.workspace.feature<FlameController>()->dock()->show();
             request.settle();
         }},
    };
}

FeatureEntry flameFeature() { return featureEntry<FlameController>(); }

} // namespace stagewright
