#include "app/ui/explain/tools_controller.h"

#include <QFileInfo>
#include <QStackedWidget>

#include "app/costs/split_sources.h"
#include "app/ui/workspace/deadlock.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "traces/fit/executed_run.h"
#include "traces/fit/fit_costs.h"
#include "traces/report/run_report.h"
#include "widgets/literals.h"
#include "widgets/memory/memory_view.h"
#include "widgets/panel/inspector.h"
#include "widgets/timeline/legend.h"
#include "widgets/timeline/timeline_view.h"
#include "widgets/tools/lowered_panel.h"
#include "widgets/tools/residual_panel.h"
#include "widgets/tools/what_if_panel.h"

namespace stagewright {
namespace {

bool drawsItsOwn(Shown::Tool tool) { return tool == Shown::Tool::Lowered || tool == Shown::Tool::WhatIf; }

} // namespace

std::vector<ActionEntry> ToolsController::actionTable()
{
    return {
        item("whatIf", ActionGroup::AnalyseTools, u"&What if…"_s, "Ctrl+Shift+W",
             u"Changes durations, links, microbatches or channels and shows the result simulated below the run"_s,
             {.at = 0, .checkable = true}),
        item("residuals", ActionGroup::AnalyseTools, u"&Predicted against measured"_s, "Ctrl+Shift+R",
             u"Predicted and measured times of each op and of the step"_s,
             {.at = 0, .checkable = true, .missing = u"This run was simulated and has no measured times."_s}),
        item("loweredView", ActionGroup::AnalyseTools, u"&Lowered schedule"_s, "Ctrl+Shift+L",
             u"Sends and receives inserted into the order by a rule, with the resulting messages and channel use"_s,
             {.at = 0, .checkable = true}),
    };
}

ToolsController::ToolsController(Workspace& workspace)
    : Feature(workspace), m_lowered(new LoweredPanel(workspace.room().panels())),
      m_whatIf(new WhatIfPanel(workspace.room().panels())), m_residuals(new ResidualPanel(workspace.room().panels())),
      m_making(workspace.jobs()), m_reading(workspace.jobs())
{
    Shown& shown = workspace.shown();
    const auto close = [this] { m_workspace.shown().setTool(Shown::Tool::None); };
    connect(m_lowered, &LoweredPanel::changed, this, &ToolsController::askTool);
    connect(m_lowered, &LoweredPanel::closeAsked, this, close);
    connect(m_whatIf, &WhatIfPanel::changed, this, &ToolsController::askTool);
    connect(m_whatIf, &WhatIfPanel::closeAsked, this, close);
    connect(m_residuals, &ResidualPanel::changed, this, &ToolsController::askTool);
    connect(m_residuals, &ResidualPanel::opChosen, &shown, &Shown::chooseOp);
    connect(m_residuals, &ResidualPanel::closeAsked, this, close);
    connect(m_lowered, &LoweredPanel::deadlockAsked, this, [this] {
        if (m_loweredPicture && m_loweredPicture->lowered)
            showDeadlock(m_workspace, m_loweredPicture->lowered, m_lowered->channels(), [this](const Schedule& fixed) {
                m_workspace.feature<FileOpening>()->openOrder(fixed, u"mended"_s);
            });
    });
    for (const auto& [id, tool] : {std::pair{"loweredView", Shown::Tool::Lowered},
                                   {"whatIf", Shown::Tool::WhatIf},
                                   {"residuals", Shown::Tool::Residuals}})
        connect(workspace.actions()[id], &QAction::triggered, this,
                [this, tool = tool](bool wanted) { m_workspace.shown().setTool(wanted ? tool : Shown::Tool::None); });
    connect(&workspace, &Workspace::actionsRefreshed, this, &ToolsController::refreshActions);
    connect(&workspace, &Workspace::themeChanged, this, [this] {
        m_lowered->setTheme(m_workspace.theme());
        m_whatIf->setTheme(m_workspace.theme());
        m_residuals->setTheme(m_workspace.theme());
    });
    connect(&shown, &Shown::toolSet, this, &ToolsController::toolSet);
    connect(&shown, &Shown::modeChanging, this, [this] {
        const Shown::Mode mode = m_workspace.shown().mode();
        if (mode != Shown::Mode::Run) {
            forget();
            m_drawn = Shown::Tool::None;
        }
        if (mode == Shown::Mode::Run || mode == Shown::Mode::Empty) showPanel();
    });
    connect(&shown, &Shown::presented, this, [this] {
        // the same question of another run
        if (m_workspace.shown().tool() != Shown::Tool::None) m_workspace.shown().setTool(m_workspace.shown().tool());
    });
    connect(&shown, &Shown::selectionShown, this, [this] {
        const SpanRef selected = m_workspace.viewState()->selected();
        if (m_workspace.shown().tool() == Shown::Tool::Residuals)
            m_residuals->setSelected(selected.valid() ? selected.span : noSpan);
    });
}

FeatureParts ToolsController::parts() { return {.panels = {m_lowered, m_whatIf, m_residuals}}; }

void ToolsController::refreshActions()
{
    const Shown& shown = m_workspace.shown();
    Actions& actions = m_workspace.actions();
    const bool again =
        shown.mode() == Shown::Mode::Run && shown.view() && !shown.view()->partial && !shown.view()->excerpt;
    actions["loweredView"]->setEnabled(again);
    actions["loweredView"]->setChecked(shown.tool() == Shown::Tool::Lowered);
    actions["whatIf"]->setEnabled(again);
    actions["whatIf"]->setChecked(shown.tool() == Shown::Tool::WhatIf);
    actions["residuals"]->setEnabled(again && shown.view()->run->info.provenance != Provenance::Simulated);
    actions["residuals"]->setChecked(shown.tool() == Shown::Tool::Residuals);
}

QString ToolsController::text() const
{
    if (m_workspace.shown().tool() == Shown::Tool::Lowered)
        return u"Lowered: sends and receives inserted by the rule \"%1\""_s.arg(
            QString::fromStdString(toText(m_lowered->lowering())));
    if (m_workspace.shown().tool() != Shown::Tool::WhatIf) return {}; // the timeline is the run's
    const auto question = m_whatIf->question();
    const QString changes = question ? QString::fromStdString(toText(*question)) : QString();
    return changes.isEmpty() ? u"Above: as simulated. Below: what if, nothing changed"_s
                             : u"Above: as simulated. Below: what if %1"_s.arg(changes);
}

// Nothing is asked any more.
void ToolsController::forget()
{
    m_making.drop();
    m_reading.drop();
    m_toolInput.reset();
    m_whatIfBase.reset();
}

void ToolsController::toolSet()
{
    Shown& shown = m_workspace.shown();
    const bool leaves = m_drawn != shown.tool() && (drawsItsOwn(m_drawn) || drawsItsOwn(shown.tool()));
    m_drawn = shown.tool();
    forget();
    shown.setToolText(text());
    if (leaves && shown.view() && shown.mode() == Shown::Mode::Run) {
        m_workspace.viewState()->clearSelection();
        showPicture({shown.view()->panel});
    }
    if (shown.mode() == Shown::Mode::Run) showPanel();
    m_workspace.refreshActions();
    if (shown.tool() != Shown::Tool::None) askTool();
}

void ToolsController::showPanel()
{
    Inspector* inspector = m_workspace.room().inspector();
    switch (m_workspace.shown().tool()) {
    case Shown::Tool::None: return inspector->setTool({}, nullptr);
    case Shown::Tool::Lowered: return inspector->setTool(u"Messages"_s, m_lowered);
    case Shown::Tool::WhatIf: return inspector->setTool(u"What if"_s, m_whatIf);
    case Shown::Tool::Residuals: return inspector->setTool(u"Errors"_s, m_residuals);
    }
}

void ToolsController::showPicture(const std::vector<std::shared_ptr<const TimelinePanel>>& panels)
{
    Shown& shown = m_workspace.shown();
    TimelineView* timeline = m_workspace.views().timeline;
    const bool fitted = m_workspace.viewState()->isFitted(), more = panels.size() != timeline->panels().size();
    timeline->setRowSizes({0, timeline->rowSizes().scale, shown.tool() == Shown::Tool::Lowered ? 26.0 : 0});
    timeline->setPanels(panels);
    m_workspace.views().memory->setPanels(panels);
    m_workspace.views().legend->setPanels(panels);
    timeline->setTitle(shown.tool() == Shown::Tool::Lowered  ? u"Lowered"_s
                       : shown.tool() == Shown::Tool::WhatIf ? u"What if"_s
                                                             : u"Timeline"_s);
    shown.setToolText(text());
    if (fitted) m_workspace.viewState()->fitAll();
    if (more || shown.tool() != Shown::Tool::WhatIf) shown.splitViews();
    emit shown.pictureChanged();
    m_workspace.refreshCaptions();
}

// The schedule of the run and the costs of its simulation; computed once per run and tool.
Result<std::shared_ptr<const ToolsController::ToolInput>> ToolsController::toolInput()
{
    if (m_toolInput) return m_toolInput;
    STAGEWRIGHT_TRY(auto schedule, scheduleOfRun(*m_workspace.shown().view()->run));
    STAGEWRIGHT_TRY(auto costs, costsOf(*m_workspace.shown().view()->run));
    completeWhole(costs, schedule.ranks);
    auto input = std::make_shared<ToolInput>();
    input->schedule = std::make_shared<const Schedule>(withoutMessages(schedule));
    input->costs = std::move(costs);
    Run run = *m_workspace.shown().view()->run;
    if (!run.schedule) run.schedule = std::make_shared<const Schedule>(schedule);
    STAGEWRIGHT_TRY(auto executed, executedRun(run));
    input->executed = std::make_shared<const Schedule>(std::move(executed.schedule));
    input->executedCosts = std::move(executed.costs);
    completeWhole(input->executedCosts, schedule.ranks);
    input->channels = executed.channels;
    input->lowering = executed.lowering;
    m_toolInput = input;
    m_whatIf->setSchedule(*input->schedule, input->costs);
    return m_toolInput;
}

void ToolsController::askTool()
{
    if (m_workspace.shown().tool() == Shown::Tool::None || !m_workspace.shown().view() ||
        m_workspace.shown().mode() != Shown::Mode::Run)
        return;
    if (m_making.waits([this] { askTool(); })) return;
    auto input = toolInput();
    if (!input) {
        m_workspace.banner()->showRefusal(u"this run has no order to simulate again"_s, input.error());
        m_workspace.shown().setTool(Shown::Tool::None);
        return;
    }
    switch (m_workspace.shown().tool()) {
    case Shown::Tool::None: break;
    case Shown::Tool::Lowered: askLowered(**input); break;
    case Shown::Tool::WhatIf: askWhatIf(**input); break;
    case Shown::Tool::Residuals: askResiduals(**input); break;
    }
}

void ToolsController::askLowered(const ToolInput& input)
{
    LoweredRequest request{input.schedule, input.costs, m_lowered->lowering(), m_lowered->channels(),
                           m_lowered->latency()};
    m_making.start(
        [request] { return std::make_shared<const LoweredPicture>(loweredPicture(request)); },
        [this](const std::shared_ptr<const LoweredPicture>& picture) {
            m_loweredPicture = picture;
            m_lowered->setPicture(*picture, Units{m_toolInput->costs.timeUnit, m_toolInput->costs.memoryUnit});
            if (picture->panel) showPicture({picture->panel});
        });
}

void ToolsController::askWhatIf(const ToolInput& input)
{
    auto question = m_whatIf->question();
    if (!question) { // its text is incomplete: the last answer stays
        m_making.drop();
        m_whatIf->setFault(question.error());
        return;
    }
    struct Answer {
        std::shared_ptr<const WhatIfBase> base;
        WhatIfPicture picture;
    };
    m_making.start(
        [schedule = input.executed, costs = input.executedCosts, channels = input.channels, lowering = input.lowering,
         base = m_whatIfBase, question = *question] {
            auto answer = std::make_shared<Answer>();
            answer->base =
                base ? base : std::make_shared<const WhatIfBase>(whatIfBase(schedule, costs, channels, lowering));
            answer->picture = whatIfPicture(*answer->base, question);
            return std::shared_ptr<const Answer>(std::move(answer));
        },
        [this, question = *question](const std::shared_ptr<const Answer>& answer) {
            m_whatIfBase = answer->base;
            m_whatIf->setPicture(answer->picture, question,
                                 Units{m_toolInput->costs.timeUnit, m_toolInput->costs.memoryUnit});
            if (answer->picture.panel) showPicture({answer->base->panel, answer->picture.panel});
        });
}

void ToolsController::askWhatIf(const QString& changes)
{
    m_workspace.shown().setTool(Shown::Tool::WhatIf);
    if (m_workspace.shown().tool() == Shown::Tool::WhatIf) m_whatIf->setFurther(changes);
}

void ToolsController::askResiduals(const ToolInput& input)
{
    const std::shared_ptr<const RunView> shown = m_workspace.shown().view();
    std::vector<ResidualPanel::Source> others;
    for (const RunRef& ref : m_workspace.runs()->refs()) {
        const RunInfo* info = m_workspace.runs()->info(ref);
        if (info == nullptr || ref == shown->ref || info->stages != shown->run->info.stages ||
            info->ranks != shown->run->info.ranks)
            continue;
        others.push_back({ref, ref.file == shown->ref.file
                                   ? runTitle(*info)
                                   : u"%1 of %2"_s.arg(runTitle(*info), QFileInfo(ref.file).fileName())});
    }
    m_residuals->setSources(others);
    const RunRef source = m_residuals->source();
    const Units units{shown->run->timeline->timeUnit(), shown->run->timeline->memoryUnit()};
    if (source.valid() && !(source == m_residualSource)) {
        readResidualCosts(source);
        return;
    }
    m_making.start(
        [run = shown->run, step = shown->step, costs = source.valid() ? *m_residualCosts : input.costs] {
            return std::make_shared<const ResidualPicture>(residualPicture(*run, step, costs));
        },
        [this, view = shown, units](const std::shared_ptr<const ResidualPicture>& picture) {
            if (view != m_workspace.shown().view()) return;
            m_residuals->setPicture(picture, view->run->timeline, view->step, units);
            m_residuals->setSelected(
                m_workspace.viewState()->selected().valid() ? m_workspace.viewState()->selected().span : noSpan);
        });
}

void ToolsController::readResidualCosts(const RunRef& source)
{
    m_workspace.library()->request(
        source, -1, m_reading.expect([this, source](Result<std::shared_ptr<const RunView>> view) {
            auto costs = view ? costsOf(*(*view)->run) : tl::unexpected(view.error());
            if (!costs) {
                m_residuals->setFault(costs.error());
                return;
            }
            m_making.start(
                [costs = std::move(*costs), run = (*view)->run, ranks = m_workspace.shown().view()->run->info.ranks,
                 file = m_workspace.library()->isSimulated(source.file) ? std::string() : source.file.toStdString()] {
                    return withBackward(costs, *run, ranks, file).costs;
                },
                [this, source](CostModel complete) {
                    m_residualSource = source;
                    m_residualCosts = std::move(complete);
                    askTool();
                });
        }));
}

std::vector<ShowEntry> ToolsController::showTable()
{
    return {
        {"lowered", 40, [](const ShowRequest& request) { request.workspace.shown().setTool(Shown::Tool::Lowered); }},
        {"residuals", 70,
         [](const ShowRequest& request) { request.workspace.shown().setTool(Shown::Tool::Residuals); }},
    };
}

FeatureEntry toolsFeature() { return featureEntry<ToolsController>(); }

} // namespace stagewright
