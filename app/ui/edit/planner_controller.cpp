#include "app/ui/edit/planner_controller.h"

#include <algorithm>
#include <cstdio>
#include <mutex>

#include "app/costs/split_sources.h"
#include "app/ui/edit/planner_panel.h"
#include "app/ui/workspace/workspace.h"
#include "schedules/execute/simulate.h"
#include "schedules/model/kinds.h"
#include "schedules/plan/plan_request.h"
#include "schedules/timeline/timeline_of.h"
#include "traces/fit/executed_run.h"
#include "traces/fit/fit_costs.h"
#include "traces/report/run_report.h"
#include "traces/run/simulated_run.h"
#include "widgets/edit/schedule_editor.h"
#include "widgets/literals.h"

namespace stagewright {

// What the search says while it runs.
struct PlannerController::Reported {
    std::mutex mutex;
    double best = 0, bound = 0; // in units of the costs
    std::int64_t done = 0, total = 0;
};

struct PlannerController::Found {
    Plan plan;
    std::shared_ptr<const Schedule> order;
    PlannedOrder picture;
};

namespace {

// As the editor times it.
PlannedOrder timed(const Schedule& schedule, const CostModel& costs, const Channels& channels)
{
    PlannedOrder out;
    const auto result = simulate(schedule, costs, channels);
    if (!result) return out;
    out.step = result->makespan;
    out.bubble = figuresOf(schedule, *result).bubbleFraction;
    for (const Bytes peak : result->peakActivation) out.peak = std::max(out.peak, peak);
    const auto timeline = timelineOf(schedule, *result, costs, TimelineParts::SpansOnly);
    if (!timeline) return out;
    PanelOptions options;
    options.step = 0;
    options.causes = options.pyramids = false;
    out.panel = makePanel(*timeline, options);
    return out;
}

} // namespace

std::vector<ActionEntry> PlannerController::actionTable()
{
    return {
        item(
            "planOrder", ActionGroup::ScheduleEdit, u"&Plan a better order…"_s, "Ctrl+Shift+J",
            u"Searches for the shortest order within a memory cap, with a proven lower bound; it becomes one change of "
            "an edit"_s,
            {.at = 35}),
    };
}

PlannerController::PlannerController(Workspace& workspace) : Feature(workspace), m_searching(workspace.jobs())
{
    QAction* action = workspace.actions()["planOrder"];
    connect(action, &QAction::triggered, this, [this] { planOrder(m_workspace.shown().budget()); });
    connect(&workspace, &Workspace::actionsRefreshed, this, [this, action] {
        const Shown& shown = m_workspace.shown();
        const auto& view = shown.view();
        action->setEnabled(shown.mode() == Shown::Mode::Edit ||
                           (shown.mode() == Shown::Mode::Run && view && !view->partial && !view->excerpt));
    });
    m_poll.setInterval(200);
    connect(&m_poll, &QTimer::timeout, this, [this] {
        if (!m_reported || !m_panel) return;
        const std::lock_guard lock(m_reported->mutex);
        const auto unit = static_cast<double>(m_subject->costs.timeUnit);
        m_panel->setProgress(static_cast<Nanos>(m_reported->best * unit), static_cast<Nanos>(m_reported->bound * unit),
                             m_reported->done, m_reported->total);
    });
}

Result<PlannerController::Subject> PlannerController::shownSubject() const
{
    if (m_workspace.shown().mode() == Shown::Mode::Edit) {
        auto* editing = m_workspace.feature<OrderEditing>();
        const ScheduleEditor& editor = editing->editor();
        if (!editor.valid())
            return fail(ErrorCode::Invalid, editor.validation().faults.front().message,
                        "an order with a fault can't be planned again; undo it first");
        const auto& source = editing->source();
        return Subject{editor.schedule(), editor.costs(), editor.channels(),
                       source ? runTitle(source->run->info) : QString(), source ? source->ref : RunRef{}};
    }
    const auto& view = m_workspace.shown().view();
    if (!view) return fail(ErrorCode::Usage, "no run is shown", "open one");
    const Run& run = *view->run;
    STAGEWRIGHT_TRY(auto schedule, scheduleOfRun(run));
    STAGEWRIGHT_TRY(auto costs, costsOf(run));
    Channels channels;
    if (auto executed = executedRun(run); executed && !executed->lowering) { // as an edit of it starts
        costs = std::move(executed->costs);
        channels = executed->channels;
    }
    return Subject{schedule, withBackward(costs, run, schedule.ranks, {}).costs, channels, runTitle(run.info),
                   view->ref};
}

void PlannerController::planOrder(std::optional<Bytes> cap)
{
    auto subject = shownSubject();
    if (!subject) return m_workspace.banner()->showRefusal(u"this order can't be planned again"_s, subject.error());
    open(std::move(*subject), cap);
}

void PlannerController::planFor(const Schedule& order, const CostModel& costs, const QString& name,
                                std::optional<Bytes> cap)
{
    open({order, costs, {}, name, {}}, cap);
}

void PlannerController::open(Subject subject, std::optional<Bytes> cap)
{
    m_searching.drop();
    if (m_panel) m_panel->close();
    m_planned.reset();
    m_subject = std::make_shared<const Subject>(std::move(subject));
    const CostModel& costs = m_subject->costs;
    const bool splits = m_subject->schedule.splitsBackward();
    m_panel = new PlannerPanel(m_workspace.theme(), m_workspace.window());
    m_panel->setAttribute(Qt::WA_DeleteOnClose);
    connect(m_panel, &PlannerPanel::searchAsked, this, &PlannerController::search);
    connect(m_panel, &PlannerPanel::stopAsked, this, [this] { m_searching.stop(); });
    connect(m_panel, &PlannerPanel::useAsked, this, &PlannerController::use);
    connect(m_panel, &QDialog::finished, this, [this] {
        m_searching.drop();
        m_poll.stop();
    });
    m_panel->setSubject(m_subject->name, costs.origin.empty() ? u"unit costs"_s : QString::fromStdString(costs.origin),
                        Units{costs.timeUnit, costs.memoryUnit}, timed(m_subject->schedule, costs, m_subject->channels),
                        cap, splits, knowsSplit(costs));
    if (const auto request = planRequestFor(m_subject->schedule, costs, splits); !request)
        m_panel->setFault(request.error());
    m_panel->open();
}

void PlannerController::search()
{
    auto request = planRequestFor(m_subject->schedule, m_subject->costs, m_panel->split());
    if (!request) return m_panel->setFault(request.error());
    request->seconds = m_panel->seconds();
    request->known = {m_subject->schedule};
    if (const auto cap = m_panel->cap(); cap && *cap)
        request->caps.assign(static_cast<std::size_t>(request->ranks), **cap);
    m_reported = std::make_shared<Reported>();
    m_planned.reset();
    m_panel->setSearching();
    m_poll.start();
    m_searching.start(
        [request = std::move(*request), subject = m_subject, reported = m_reported,
         split = m_panel->split()](const std::stop_token& stop) -> Result<std::shared_ptr<const Found>> {
            Progress progress;
            progress.stop = stop;
            progress.report = [reported](std::string_view what, std::int64_t done, std::int64_t total) {
                const std::lock_guard lock(reported->mutex);
                std::sscanf(std::string(what).c_str(), "best %lf, bound %lf", &reported->best, &reported->bound);
                reported->done = done;
                reported->total = total;
            };
            STAGEWRIGHT_TRY(auto found, plan(request, progress));
            auto out = std::make_shared<Found>();
            out->order = std::make_shared<const Schedule>(planInFamily(found.schedule, subject->schedule, split));
            out->picture = timed(*out->order, subject->costs, subject->channels);
            out->plan = std::move(found);
            return std::shared_ptr<const Found>(std::move(out));
        },
        [this](const Result<std::shared_ptr<const Found>>& found) {
            m_poll.stop();
            if (!m_panel) return;
            if (!found) return m_panel->setFault(found.error());
            m_planned = (*found)->order;
            m_panel->setAnswer((*found)->plan, (*found)->picture);
        });
}

// One change of the edit that is open, or of one that starts with the subject.
void PlannerController::use()
{
    if (!m_planned) return;
    const std::shared_ptr<const Schedule> order = m_planned;
    const std::shared_ptr<const Subject> subject = m_subject;
    const QString change = u"Plan the order"_s;
    auto* editing = m_workspace.feature<OrderEditing>();
    if (m_panel) m_panel->accept();
    if (!subject->run.valid()) {
        auto run = simulatedRun(subject->schedule, subject->costs);
        if (!run) return m_workspace.banner()->showError(QString(), run.error());
        run->info.name = subject->name.toStdString();
        m_workspace.room().showPage(nullptr, {}); // the explorer's, where it is shown
        editing->editRun(std::move(*run), change, *order);
    } else {
        if (m_workspace.shown().mode() != Shown::Mode::Edit) editing->enterEdit();
        const bool same = m_workspace.shown().mode() == Shown::Mode::Edit && editing->source() &&
                          editing->source()->ref == subject->run;
        if (!same)
            return m_workspace.banner()->showRefusal(u"another run is shown now"_s,
                                                     u"show %1 and plan again"_s.arg(subject->name));
        editing->editor().replace(change, *order);
    }
    m_workspace.actions()["ghostOriginal"]->setChecked(true);
}

std::vector<ShowEntry> PlannerController::showTable()
{
    return {
        {.name = "planner",
         .at = 300,
         .dialog =
             [](const ShowRequest& request) {
                 auto* planner = request.workspace.feature<PlannerController>();
                 request.workspace.feature<OrderPlanning>()->planOrder(request.workspace.shown().budget());
                 if (planner->panel() == nullptr)
                     return ShownDialog{nullptr, u"nothing is shown that can be planned"_s};
                 return ShownDialog{planner->panel()};
             }},
    };
}

FeatureEntry plannerFeature() { return featureEntry<PlannerController>(); }

} // namespace stagewright
