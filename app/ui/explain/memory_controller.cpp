#include "app/ui/explain/memory_controller.h"

#include <algorithm>

#include <QMenu>
#include <QSettings>

#include "app/costs/split_costs.h"
#include "app/ui/workspace/workspace.h"
#include "schedules/timeline/timeline_of.h"
#include "traces/analysis/work_bytes.h"
#include "traces/fit/executed_run.h"
#include "traces/report/run_report.h"
#include "widgets/literals.h"
#include "widgets/memory/memory_view.h"
#include "widgets/sentence.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {
namespace {

constexpr std::size_t mostLookedThrough = 500'000;

// The run's schedule simulated with the run's costs; null where either is unknown.
std::shared_ptr<const TimelinePanel> predictedPanel(const Run& run)
{
    auto again = executedRun(run);
    if (!again) return nullptr;
    completeWhole(again->costs, again->schedule.ranks);
    const auto timeline = simulatedTimeline(again->schedule, again->costs, again->channels);
    if (!timeline) return nullptr;
    PanelOptions options;
    options.step = 0;
    options.pyramids = options.causes = false;
    return makePanel(*timeline, options);
}

} // namespace

std::vector<ActionEntry> MemoryController::actionTable()
{
    std::vector<ActionEntry> out;
    for (const MemoryCategory category : stackOrder()) {
        const MemoryTraits& traits = traitsOf(category);
        out.push_back({.id = traits.key,
                       .group = ActionGroup::MemoryCharts,
                       .text = qtText(traits.menu),
                       .tooltip = qtText(traits.help),
                       .checkable = true});
    }
    const std::vector<ActionEntry> others{
        item("memoryAll", ActionGroup::MemoryCharts, u"All categories"_s, {},
             u"Stacks everything that the run says of its memory; again: activations alone"_s, {.checkable = true}),
        item("memoryOwnScale", ActionGroup::MemoryCharts, u"Each rank on its own &scale"_s, {},
             u"Otherwise one scale for all ranks, so that heights compare"_s, {.line = true, .checkable = true}),
        item("memoryPredicted", ActionGroup::MemoryCharts, u"&Predicted over measured"_s, {},
             u"The schedule simulated with this run's own costs, dotted over the measured curve"_s,
             {.checkable = true}),
        item("memoryCounters", ActionGroup::MemoryCharts, u"Co&unters"_s, {},
             u"Counters that the run recorded, each on its own scale"_s, {.checkable = true}),
    };
    out.insert(out.end(), others.begin(), others.end());
    return out;
}

MemoryController::MemoryController(Workspace& workspace) : Feature(workspace), m_predicting(workspace.jobs())
{
    Actions& a = workspace.actions();
    MemoryView* view = workspace.views().memory;
    const QSettings stored;
    MemorySettings settings;
    for (const MemoryCategory category : stackOrder()) {
        const QString key = u"memory/show_"_s + QString::fromStdString(std::string(toText(category)));
        settings.set(category, stored.value(key, settings.has(category)).toBool());
        connect(a[traitsOf(category).key], &QAction::triggered, this, [view, category](bool wanted) {
            MemorySettings next = view->settings();
            next.set(category, wanted);
            view->setSettings(next);
        });
    }
    settings.ownScale = stored.value(u"memory/ownScale"_s, false).toBool();
    settings.counters = stored.value(u"memory/counters"_s, true).toBool();
    view->setSettings(settings);
    a["memoryPredicted"]->setChecked(stored.value(u"memory/predicted"_s, false).toBool());
    connect(a["memoryOwnScale"], &QAction::triggered, this, [view](bool wanted) {
        MemorySettings next = view->settings();
        next.ownScale = wanted;
        view->setSettings(next);
    });
    connect(a["memoryCounters"], &QAction::triggered, this, [view](bool wanted) {
        MemorySettings next = view->settings();
        next.counters = wanted;
        view->setSettings(next);
    });
    connect(a["memoryAll"], &QAction::triggered, this, [view](bool wanted) {
        MemorySettings next = view->settings();
        for (const MemoryCategory category : stackOrder())
            next.set(category, wanted || category == MemoryCategory::Activations);
        view->setSettings(next);
    });
    connect(a["memoryPredicted"], &QAction::triggered, this, [this](bool wanted) {
        QSettings().setValue(u"memory/predicted"_s, wanted);
        refreshPredicted();
    });
    connect(view, &MemoryView::settingsChanged, this, [this, view] {
        QSettings now;
        for (const MemoryCategory category : stackOrder())
            now.setValue(u"memory/show_"_s + QString::fromStdString(std::string(toText(category))),
                         view->settings().has(category));
        now.setValue(u"memory/ownScale"_s, view->settings().ownScale);
        now.setValue(u"memory/counters"_s, view->settings().counters);
        refresh();
    });
    connect(view, &MemoryView::menuAsked, this, &MemoryController::showMenu);
    // The charts follow the rows: the first rank in view above is the first one below, the selected one is in view.
    TimelineView* timeline = workspace.views().timeline;
    connect(&timeline->input(), &TimelineInput::rowsScrolled, view, [timeline, view] {
        const TimelineScene& scene = timeline->scene();
        const int row = scene.nearestRow(scene.scrolledRect().top() + 1);
        if (row >= 0) view->showRank(scene.place(row).rankIndex, true);
    });
    connect(workspace.viewState(), &ViewState::selectionChanged, view, [timeline, view, state = workspace.viewState()] {
        const SpanRef ref = state->selected();
        if (!ref.valid() || ref.panel >= static_cast<int>(timeline->panels().size())) return;
        const int rank = timeline->scene().rankNumber(ref);
        const auto& ranks = timeline->panels()[static_cast<std::size_t>(ref.panel)]->ranks;
        for (std::size_t i = 0; i < ranks.size(); ++i)
            if (ranks[i].rank == rank) view->showRank(static_cast<int>(i), false);
    });
    connect(&workspace.shown(), &Shown::modeChanged, this, [this] {
        refresh();
        refreshPredicted();
    });
    refresh();
}

void MemoryController::refresh()
{
    Actions& a = m_workspace.actions();
    const MemorySettings& settings = m_workspace.views().memory->settings();
    const auto& panels = m_workspace.views().timeline->panels();
    std::vector<bool> present(memoryCategoryCount, false);
    bool counters = false;
    for (const auto& panel : panels) {
        // Skipped for very many events: then any category may be chosen.
        const bool few = panel->timeline->memory().size() <= mostLookedThrough;
        const std::vector<bool> of =
            few ? categoriesOf(*panel->timeline) : std::vector<bool>(memoryCategoryCount, true);
        for (std::size_t i = 0; i < of.size(); ++i) present[i] = present[i] || of[i];
        const auto all = panel->timeline->counters();
        counters = counters || !std::all_of(all.begin(), all.end(), isWorkBytes);
    }
    for (const MemoryCategory category : stackOrder()) {
        a[traitsOf(category).key]->setChecked(settings.has(category));
        a[traitsOf(category).key]->setEnabled(present[static_cast<std::size_t>(category)]);
    }
    a["memoryAll"]->setChecked(settings.count() == static_cast<int>(memoryCategoryCount));
    a["memoryAll"]->setEnabled(std::count(present.begin(), present.end(), true) > 1);
    a["memoryOwnScale"]->setChecked(settings.ownScale);
    a["memoryOwnScale"]->setEnabled(!panels.empty());
    a["memoryCounters"]->setChecked(settings.counters);
    a["memoryCounters"]->setEnabled(counters);
    const auto shown = m_workspace.shown().view();
    a["memoryPredicted"]->setEnabled(m_workspace.shown().mode() == Shown::Mode::Run && shown &&
                                     shown->run->info.provenance != Provenance::Simulated);
}

void MemoryController::refreshPredicted()
{
    const auto shown = m_workspace.shown().view();
    const QAction* action = m_workspace.actions()["memoryPredicted"];
    const bool wanted = action->isChecked() && action->isEnabled() && !shown->partial && !shown->excerpt;
    m_predicting.drop();
    if (!wanted) {
        m_workspace.views().memory->setPredicted(nullptr);
        return;
    }
    if (m_predictedOf && m_predictedOf->run == shown->run) {
        m_workspace.views().memory->setPredicted(m_predicted);
        return;
    }
    m_predicting.start([run = shown->run] { return predictedPanel(*run); },
                       [this, shown](std::shared_ptr<const TimelinePanel> panel) {
                           m_predictedOf = shown;
                           m_predicted = std::move(panel);
                           m_workspace.views().memory->setPredicted(m_predicted);
                       });
}

void MemoryController::showMenu(const QPoint& at)
{
    Actions& a = m_workspace.actions();
    QMenu menu(m_workspace.window());
    for (const MemoryCategory category : stackOrder()) menu.addAction(a[traitsOf(category).key]);
    menu.addAction(a["memoryAll"]);
    menu.addSeparator();
    for (const ActionId id : {"memoryOwnScale", "memoryPredicted", "memoryCounters", "memoryBudget"})
        menu.addAction(a[id]);
    menu.addSeparator();
    for (const ActionId id : {"fit", "memory", "exportPicture"}) menu.addAction(a[id]);
    menu.exec(at);
}

namespace {

void showStacked(const ShowRequest& request)
{
    MemorySettings settings = request.workspace.views().memory->settings();
    settings.shown.assign(memoryCategoryCount, true);
    request.workspace.views().memory->setSettings(settings);
    request.settle();
}

} // namespace

std::vector<ShowEntry> MemoryController::showTable()
{
    return {
        {"stacked", 200, &showStacked},
    };
}

FeatureEntry memoryFeature() { return featureEntry<MemoryController>(); }

} // namespace stagewright
