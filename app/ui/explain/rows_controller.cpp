#include "app/ui/explain/rows_controller.h"

#include <algorithm>
#include <cmath>

#include <QActionGroup>
#include <QMenu>
#include <QSettings>
#include <QSplitter>

#include "app/ui/workspace/workspace.h"
#include "widgets/preferences/preferences.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {
namespace {

struct GroupingChoice {
    ActionId action;
    Grouping grouping;
    int size;
    const char* key; // in the settings
};
constexpr GroupingChoice groupings[] = {
    {"groupAuto", Grouping::Automatic, 0, "automatic"},
    {"groupNone", Grouping::None, 0, "none"},
    {"groupOf8", Grouping::Count, 8, "8"},
    {"groupOf32", Grouping::Count, 32, "32"},
    {"groupOf128", Grouping::Count, 128, "128"},
    {"groupStage", Grouping::Stage, 0, "stage"},
    {"groupBusy", Grouping::Busy, 0, "busy"},
    {"groupHost", Grouping::Host, 0, "host"},
    {"groupPipeline", Grouping::Pipeline, 0, "pipeline"},
    {"groupData", Grouping::Data, 0, "data"},
    {"groupTensor", Grouping::Tensor, 0, "tensor"},
    {"groupExpert", Grouping::Expert, 0, "expert"},
    {"groupContext", Grouping::Context, 0, "context"},
    {"groupReplica", Grouping::Replica, 0, "replica"},
};

QVariantList listOf(const std::set<int>& ranks)
{
    QVariantList list;
    for (const int rank : ranks) list << rank;
    return list;
}

std::set<int> setOf(const QVariant& value)
{
    std::set<int> ranks;
    for (const QVariant& one : value.toList()) ranks.insert(one.toInt());
    return ranks;
}

constexpr std::pair<ActionId, TimeUnit> units[] = {{"unitAuto", TimeUnit::Automatic},
                                                   {"unitNanos", TimeUnit::Nanoseconds},
                                                   {"unitMicros", TimeUnit::Microseconds},
                                                   {"unitMillis", TimeUnit::Milliseconds},
                                                   {"unitSeconds", TimeUnit::Seconds}};

} // namespace

std::vector<ActionEntry> RowsController::actionTable()
{
    return {
        {.id = "rowUp",
         .group = ActionGroup::Rows,
         .text = tr("Row &above"),
         .keys = "Alt+Up",
         .tooltip = tr("Moves the row mark in the gutter; the row keys act on the marked row")},
        {.id = "rowDown",
         .group = ActionGroup::Rows,
         .text = tr("Row &below"),
         .keys = "Alt+Down",
         .tooltip = tr("Moves the row mark in the gutter; the row keys act on the marked row")},
        {.id = "pinRank",
         .group = ActionGroup::Rows,
         .line = true,
         .text = tr("&Pin to the top"),
         .keys = "Shift+P",
         .tooltip =
             tr("Keeps ranks above the scrolling rows: those of the selected area, the marked row or the selected op"),
         .checkable = true},
        {.id = "foldRank",
         .group = ActionGroup::Rows,
         .text = tr("&Fold to a thin row"),
         .keys = "Shift+C",
         .tooltip = tr("Shows a thin row of utilisation, without its track"),
         .checkable = true},
        {.id = "rankTrack",
         .group = ActionGroup::Rows,
         .text = tr("&Hide its comm track"),
         .keys = "Shift+T",
         .tooltip = tr("For these ranks only; Comm tracks hides all of them"),
         .checkable = true},
        {.id = "openGroup",
         .group = ActionGroup::Rows,
         .text = tr("&Open or fold the group"),
         .keys = "Shift+Return",
         .tooltip = tr("Shows the group's ranks one by one, or as one row again")},
        {.id = "groupAuto",
         .group = ActionGroup::Rows,
         .line = true,
         .text = tr("Automatic groups by &number of ranks"),
         .tooltip = tr("No groups up to 64 ranks; above that, at most 32 groups"),
         .checkable = true},
        {.id = "groupNone", .group = ActionGroup::Rows, .text = tr("On&e row per rank"), .checkable = true},
        {.id = "groupOf8", .group = ActionGroup::Rows, .text = tr("Groups of &8 ranks"), .checkable = true},
        {.id = "groupOf32", .group = ActionGroup::Rows, .text = tr("Groups of &32 ranks"), .checkable = true},
        {.id = "groupOf128", .group = ActionGroup::Rows, .text = tr("Groups of &128 ranks"), .checkable = true},
        {.id = "groupStage",
         .group = ActionGroup::Rows,
         .text = tr("Groups by &stage"),
         .tooltip = tr("Groups ranks that run the same stages"),
         .checkable = true},
        {.id = "groupBusy",
         .group = ActionGroup::Rows,
         .text = tr("Groups by b&usy time"),
         .tooltip = tr("Groups ranks that are about equally busy, the idlest first"),
         .checkable = true},
        {.id = "groupHost",
         .group = ActionGroup::Rows,
         .text = tr("Groups by h&ost"),
         .tooltip = tr("Groups ranks on the same host, where the trace says"),
         .checkable = true},
        {.id = "groupPipeline",
         .group = ActionGroup::Rows,
         .text = tr("Groups by p&ipeline place"),
         .tooltip = tr("Groups ranks with the same place in the pipeline, as the trace's process groups say"),
         .checkable = true},
        {.id = "groupData",
         .group = ActionGroup::Rows,
         .text = tr("Groups by &data-parallel place"),
         .tooltip = tr("Groups ranks with the same data-parallel place, as the trace's process groups say"),
         .checkable = true},
        {.id = "groupTensor",
         .group = ActionGroup::Rows,
         .text = tr("Groups by tensor-parallel place"),
         .tooltip = tr("Groups ranks with the same tensor-parallel place, as the trace's process groups say"),
         .checkable = true},
        {.id = "groupExpert",
         .group = ActionGroup::Rows,
         .text = tr("Groups by e&xpert-parallel place"),
         .tooltip = tr("Groups ranks with the same expert-parallel place, as the trace's process groups say"),
         .checkable = true},
        {.id = "groupContext",
         .group = ActionGroup::Rows,
         .text = tr("Groups by context-parallel place"),
         .tooltip = tr("Groups ranks with the same context-parallel place, as the trace's process groups say"),
         .checkable = true},
        {.id = "groupReplica",
         .group = ActionGroup::Rows,
         .text = tr("Replicas under their pipeline rank"),
         .tooltip = tr("Shows the ranks of the first replica, and the other replicas' ranks folded below each"),
         .checkable = true},
        {.id = "groupRange",
         .group = ActionGroup::Rows,
         .line = true,
         .text = tr("&Mean, minimum and maximum in groups"),
         .tooltip = tr("A group's row shows how busy its ranks are: mean, idlest and busiest; otherwise the mean time "
                       "of each kind"),
         .checkable = true},
        {.id = "subLanes",
         .group = ActionGroup::Rows,
         .line = true,
         .text = tr("&Kernels and copies"),
         .keys = "Shift+K",
         .tooltip = tr("Work other than ops, in thin rows under its rank, where the run has any"),
         .checkable = true},
        {.id = "kernelClasses",
         .group = ActionGroup::Rows,
         .text = tr("Kernels by &class"),
         .tooltip = tr("Colours kernels and copies by what they are, such as matrix products, and ranges by name, "
                       "instead of the ops that launched them"),
         .checkable = true},
        {.id = "waitLanes",
         .group = ActionGroup::Rows,
         .text = tr("&Waits"),
         .tooltip = tr("What each rank waited for, in thin rows under it"),
         .checkable = true},
        {.id = "rowsTaller",
         .group = ActionGroup::Rows,
         .line = true,
         .text = tr("&Taller rows"),
         .keys = "Ctrl+Shift+Up",
         .tooltip = tr("Ctrl+Shift+wheel over the timeline; remembered")},
        {.id = "rowsLower",
         .group = ActionGroup::Rows,
         .text = tr("Sma&ller rows"),
         .keys = "Ctrl+Shift+Down",
         .tooltip = tr("Ctrl+Shift+wheel over the timeline; remembered")},
        {.id = "rowsAutomatic",
         .group = ActionGroup::Rows,
         .text = tr("Automatic row hei&ght"),
         .tooltip = tr("Taller rows where the window has room"),
         .checkable = true},
        {.id = "resetRows",
         .group = ActionGroup::Rows,
         .line = true,
         .text = tr("&Reset all rows"),
         .tooltip = tr("Unpins and unfolds every rank and shows every track")},
        {.id = "timeRelative",
         .group = ActionGroup::Times,
         .text = tr("From the &start of the step"),
         .tooltip = tr("Every step starts at zero"),
         .checkable = true},
        {.id = "timeAbsolute",
         .group = ActionGroup::Times,
         .text = tr("From the start of the &run"),
         .tooltip = tr("Time since the run started"),
         .checkable = true},
        {.id = "unitAuto",
         .group = ActionGroup::Times,
         .line = true,
         .text = tr("&Automatic unit"),
         .tooltip = tr("Each time in the unit that leaves one to three digits before the decimal point"),
         .checkable = true},
        {.id = "unitNanos", .group = ActionGroup::Times, .text = tr("&Nanoseconds"), .checkable = true},
        {.id = "unitMicros", .group = ActionGroup::Times, .text = tr("Mi&croseconds"), .checkable = true},
        {.id = "unitMillis", .group = ActionGroup::Times, .text = tr("&Milliseconds"), .checkable = true},
        {.id = "unitSeconds", .group = ActionGroup::Times, .text = tr("S&econds"), .checkable = true},
    };
}

RowsController::RowsController(Workspace& workspace) : Feature(workspace)
{
    Actions& a = workspace.actions();
    TimelineView* view = workspace.views().timeline;
    ViewState* state = workspace.viewState();
    const auto on = [&](ActionId id, auto slot) { connect(a[id], &QAction::triggered, this, slot); };
    auto* exclusive = new QActionGroup(this);
    for (const GroupingChoice& choice : groupings) {
        exclusive->addAction(a[choice.action]);
        on(choice.action, [this, choice] { setGrouping(choice.grouping, choice.size); });
    }
    on("groupRange", [state](bool wanted) {
        RowSettings rows = state->rows();
        rows.look = wanted ? GroupLook::Range : GroupLook::Kinds;
        state->setRows(rows);
    });
    on("subLanes", [state](bool wanted) {
        RowSettings rows = state->rows();
        rows.lanes = wanted;
        state->setRows(rows);
    });
    on("kernelClasses", [this](bool wanted) {
        QSettings().setValue(QStringLiteral("rows/classes"), wanted);
        m_workspace.library()->setKernelsByClass(wanted);
        m_workspace.shown().showAgain();
    });
    on("waitLanes", [state](bool wanted) {
        RowSettings rows = state->rows();
        rows.waits = wanted;
        state->setRows(rows);
    });
    on("pinRank", [this] { toggleRanks(&RowSettings::pinned); });
    on("foldRank", [this] { toggleRanks(&RowSettings::collapsed); });
    on("rankTrack", [this] { toggleRanks(&RowSettings::trackless); });
    on("openGroup", [view] { view->toggleGroup(view->cursorRow()); });
    on("rowUp", [view] {
        view->setFocus();
        view->moveCursor(-1);
    });
    on("rowDown", [view] {
        view->setFocus();
        view->moveCursor(1);
    });
    on("resetRows", [state] {
        RowSettings rows = state->rows();
        rows.pinned.clear();
        rows.collapsed.clear();
        rows.trackless.clear();
        rows.expanded.clear();
        state->setRows(rows);
    });
    on("rowsTaller", [this] { scaleRows(1); });
    on("rowsLower", [this] { scaleRows(-1); });
    on("rowsAutomatic", [this] { setRowScale(0); });
    connect(view, &TimelineView::rowScaleAsked, this, &RowsController::scaleRows);
    workspace.room().rows()->installEventFilter(this);
    auto* origins = new QActionGroup(this);
    for (const auto& [id, origin] : {std::pair{"timeRelative", TimeOrigin::Step}, {"timeAbsolute", TimeOrigin::Run}}) {
        origins->addAction(a[id]);
        on(id, [state, origin = origin] {
            QSettings().setValue(QStringLiteral("times/absolute"), origin == TimeOrigin::Run);
            state->setTimeOrigin(origin);
        });
    }
    auto* unitGroup = new QActionGroup(this);
    for (const auto& [id, unit] : units) {
        unitGroup->addAction(a[id]);
        on(id, [this, unit = unit] { setUnit(unit); });
    }
    restore();
    connect(&PreferenceStore::instance(), &PreferenceStore::changed, this, &RowsController::refreshUnit);
    connect(state, &ViewState::rowsChanged, this, [this] {
        refresh();
        remember();
    });
    connect(state, &ViewState::selectionChanged, this, &RowsController::refresh);
    connect(view, &TimelineView::rowsLaidOut, this, &RowsController::runChanged);
    connect(view, &TimelineView::cursorMoved, this, &RowsController::refresh);
    connect(view, &TimelineView::rowMenuAsked, this, [this](const QPoint& at, int row) {
        QMenu menu(m_workspace.window());
        fillRowMenu(menu, row);
        menu.exec(at);
    });
    connect(view, &TimelineView::gapMenuAsked, this, [this](const QPoint& at, int panel, int rank, Nanos time) {
        QMenu menu(m_workspace.window());
        fillGapMenu(menu, panel, rank, time);
        menu.exec(at);
    });
    refresh();
}

void RowsController::restore()
{
    const QSettings settings;
    RowSettings rows;
    const QString grouping = settings.value(QStringLiteral("rows/grouping")).toString();
    for (const GroupingChoice& choice : groupings) {
        if (grouping != QLatin1String(choice.key)) continue;
        rows.grouping = choice.grouping;
        rows.groupSize = choice.size;
    }
    rows.look = settings.value(QStringLiteral("rows/range"), false).toBool() ? GroupLook::Range : GroupLook::Kinds;
    rows.lanes = settings.value(QStringLiteral("rows/lanes"), true).toBool();
    rows.waits = settings.value(QStringLiteral("rows/waits"), false).toBool();
    m_workspace.viewState()->setRows(rows);
    const bool classes = settings.value(QStringLiteral("rows/classes"), false).toBool();
    m_workspace.library()->setKernelsByClass(classes);
    m_workspace.actions()["kernelClasses"]->setChecked(classes);
    m_rowScale = settings.value(QStringLiteral("rows/scale"), 0).toDouble();
    if (m_rowScale != 0) m_rowScale = std::clamp(m_rowScale, leastRowScale, mostRowScale);
    const bool absolute = settings.value(QStringLiteral("times/absolute"), false).toBool();
    m_workspace.viewState()->setTimeOrigin(absolute ? TimeOrigin::Run : TimeOrigin::Step);
    m_workspace.actions()[absolute ? "timeAbsolute" : "timeRelative"]->setChecked(true);
    refreshUnit();
}

// Rows of 48 px, or 38 px in a comparison, fill a window of 1000 px; a taller window enlarges them while all stay
// visible.
double RowsController::suitableScale() const
{
    constexpr double usual = 880, most = 1.75; // px of timeline and charts; of the scale
    const TimelineView* view = m_workspace.views().timeline;
    const double room = m_workspace.room().rows()->height(), wanted = std::clamp(room / usual, 1.0, most);
    const RowLayout& rows = view->layout();
    if (wanted == 1 || rows.rows.empty()) return 1;
    const double bars = static_cast<double>(rows.rows.size()) * rows.metrics.height / view->rowScale(); // at scale 1
    const double rest = view->contentHeight() + 8 - bars * view->rowScale();
    const double share = room * (view->panels().size() > 1 ? 0.72 : 0.62);
    return std::clamp((share - rest) / std::max(1.0, bars), 1.0, wanted);
}

void RowsController::fitRows()
{
    const double scale = m_rowScale > 0 ? m_rowScale : suitableScale();
    if (std::abs(scale - m_workspace.views().timeline->rowScale()) < 0.01) return;
    m_workspace.views().timeline->setRowScale(scale);
    m_workspace.shown().splitViews();
}

void RowsController::setRowScale(double scale)
{
    m_rowScale = scale == 0 ? 0 : std::clamp(scale, leastRowScale, mostRowScale);
    QSettings().setValue(QStringLiteral("rows/scale"), m_rowScale);
    fitRows();
    refresh();
}

void RowsController::scaleRows(double notches)
{
    setRowScale(m_workspace.views().timeline->rowScale() * std::pow(1.15, notches));
}

bool RowsController::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_workspace.room().rows() && event->type() == QEvent::Resize)
        QMetaObject::invokeMethod(this, &RowsController::fitRows, Qt::QueuedConnection);
    return QObject::eventFilter(watched, event);
}

void RowsController::refreshUnit()
{
    for (const auto& [id, unit] : units)
        if (unit == PreferenceStore::instance().value().timeUnit) m_workspace.actions()[id]->setChecked(true);
}

void RowsController::setUnit(TimeUnit unit)
{
    Preferences preferences = PreferenceStore::instance().value();
    preferences.timeUnit = unit;
    PreferenceStore::instance().set(preferences); // so that every window prints its times again
    refreshUnit();
}

void RowsController::remember() const
{
    QSettings settings;
    const RowSettings& rows = m_workspace.viewState()->rows();
    for (const GroupingChoice& choice : groupings)
        if (choice.grouping == rows.grouping && choice.size == rows.groupSize)
            settings.setValue(QStringLiteral("rows/grouping"), QString::fromLatin1(choice.key));
    settings.setValue(QStringLiteral("rows/range"), rows.look == GroupLook::Range);
    settings.setValue(QStringLiteral("rows/lanes"), rows.lanes);
    settings.setValue(QStringLiteral("rows/waits"), rows.waits);
    if (m_ranks == 0) return;
    settings.beginGroup(QStringLiteral("rows/%1").arg(m_ranks));
    settings.setValue(QStringLiteral("pinned"), listOf(rows.pinned));
    settings.setValue(QStringLiteral("folded"), listOf(rows.collapsed));
    settings.setValue(QStringLiteral("trackless"), listOf(rows.trackless));
    settings.setValue(QStringLiteral("open"), listOf(rows.expanded));
    settings.endGroup();
}

void RowsController::runChanged()
{
    std::size_t ranks = 0;
    for (const auto& panel : m_workspace.views().timeline->panels()) ranks = std::max(ranks, panel->ranks.size());
    if (static_cast<int>(ranks) != m_ranks && ranks > 0) {
        m_ranks = static_cast<int>(ranks);
        QSettings settings;
        settings.beginGroup(QStringLiteral("rows/%1").arg(m_ranks));
        RowSettings rows = m_workspace.viewState()->rows();
        rows.pinned = setOf(settings.value(QStringLiteral("pinned")));
        rows.collapsed = setOf(settings.value(QStringLiteral("folded")));
        rows.trackless = setOf(settings.value(QStringLiteral("trackless")));
        rows.expanded = setOf(settings.value(QStringLiteral("open")));
        m_workspace.viewState()->setRows(rows);
    }
    fitRows();
    refresh();
}

void RowsController::refresh()
{
    Actions& a = m_workspace.actions();
    const TimelineView* view = m_workspace.views().timeline;
    const RowSettings& rows = m_workspace.viewState()->rows();
    const bool shown = !view->panels().empty();
    for (const GroupingChoice& choice : groupings) {
        const bool possible = std::any_of(view->panels().begin(), view->panels().end(),
                                          [&](const auto& panel) { return canGroup(*panel, choice.grouping); });
        a[choice.action]->setEnabled(shown && possible);
        if (choice.grouping == rows.grouping && choice.size == rows.groupSize) a[choice.action]->setChecked(true);
    }
    a["groupRange"]->setChecked(rows.look == GroupLook::Range);
    a["subLanes"]->setChecked(rows.lanes);
    a["waitLanes"]->setChecked(rows.waits);
    a["kernelClasses"]->setEnabled(std::any_of(view->panels().begin(), view->panels().end(), [](const auto& panel) {
        return !panel->noOps && std::any_of(panel->ranks.begin(), panel->ranks.end(), [](const PanelRank& rank) {
            return std::any_of(rank.lanes.begin(), rank.lanes.end(), [](const PanelLane& lane) {
                return isDeviceLane(lane.lane) || lane.lane == Lane::Other;
            });
        });
    }));
    const std::vector<int> ranks = view->chosenRanks();
    const auto mark = [&](ActionId id, const std::set<int>& of) {
        a[id]->setEnabled(!ranks.empty());
        a[id]->setChecked(!ranks.empty() &&
                          std::all_of(ranks.begin(), ranks.end(), [&](int rank) { return of.count(rank) != 0; }));
    };
    mark("pinRank", rows.pinned);
    mark("foldRank", rows.collapsed);
    mark("rankTrack", rows.trackless);
    const int row = view->cursorRow();
    a["openGroup"]->setEnabled(row >= 0 && view->layout().rows[static_cast<std::size_t>(row)].group >= 0);
    for (const ActionId id : {"rowUp", "rowDown", "rowsAutomatic"}) a[id]->setEnabled(shown);
    a["rowsTaller"]->setEnabled(shown && view->rowScale() < mostRowScale);
    a["rowsLower"]->setEnabled(shown && view->rowScale() > leastRowScale);
    a["rowsAutomatic"]->setChecked(m_rowScale == 0);
    a["resetRows"]->setEnabled(!rows.pinned.empty() || !rows.collapsed.empty() || !rows.trackless.empty() ||
                               !rows.expanded.empty());
}

// All of them if one is not yet, else none.
void RowsController::toggleRanks(std::set<int> RowSettings::*of)
{
    const std::vector<int> ranks = m_workspace.views().timeline->chosenRanks();
    if (ranks.empty()) return;
    RowSettings rows = m_workspace.viewState()->rows();
    std::set<int>& chosen = rows.*of;
    const bool all = std::all_of(ranks.begin(), ranks.end(), [&](int rank) { return chosen.count(rank) != 0; });
    for (const int rank : ranks) {
        if (all)
            chosen.erase(rank);
        else
            chosen.insert(rank);
    }
    m_workspace.viewState()->setRows(rows);
}

void RowsController::setGrouping(Grouping grouping, int size)
{
    RowSettings rows = m_workspace.viewState()->rows();
    rows.grouping = grouping;
    rows.groupSize = size;
    m_workspace.viewState()->setRows(rows);
}

void RowsController::fillRowMenu(QMenu& menu, int row)
{
    Actions& a = m_workspace.actions();
    TimelineView* view = m_workspace.views().timeline;
    if (row < 0 || row >= static_cast<int>(view->layout().rows.size())) return;
    const RowPlace& place = view->layout().rows[static_cast<std::size_t>(row)];
    menu.addSection(view->rowText(row));
    if (place.group >= 0) menu.addAction(a["openGroup"]);
    for (const ActionId id : {"pinRank", "foldRank", "rankTrack"}) menu.addAction(a[id]);
    menu.addAction(tr("Select the whole row"), this, [this, first = place.firstPosition, last = place.lastPosition] {
        m_workspace.viewState()->setAreas({{m_workspace.viewState()->extent(), first, last}});
    });
    menu.addSeparator();
    QMenu* groups = menu.addMenu(tr("&Group ranks"));
    for (const GroupingChoice& choice : groupings) groups->addAction(a[choice.action]);
    groups->addSeparator();
    groups->addAction(a["groupRange"]);
    for (const ActionId id : {"subLanes", "waitLanes", "commTracks"}) menu.addAction(a[id]);
    menu.addSeparator();
    menu.addAction(a["resetRows"]);
}

void RowsController::fillGapMenu(QMenu& menu, int panel, int rank, Nanos axisTime)
{
    TimelineView* view = m_workspace.views().timeline;
    if (panel < 0 || panel >= static_cast<int>(view->panels().size())) return;
    const TimelinePanel& shown = *view->panels()[static_cast<std::size_t>(panel)];
    const LaneData& lane = shown.ranks[static_cast<std::size_t>(rank)].compute;
    const std::size_t next = lane.firstEndingAfter(axisTime);
    const TimeRange gap{next > 0 ? lane.slices()[next - 1].end() : 0,
                        next < lane.size() ? lane.slices()[next].begin() : shown.duration};
    menu.addSection(tr("Idle, rank %1: %2").arg(rank).arg(durationText(gap.duration(), shown.units)));
    QAction* why = menu.addAction(tr("&Explain this gap"), this,
                                  [view, panel, rank, axisTime] { emit view->idleClicked(panel, rank, axisTime); });
    why->setEnabled(m_workspace.shown().mode() == Shown::Mode::Run);
    menu.addAction(tr("&Fit this gap"), this, [this, gap] { m_workspace.viewState()->fit(gap); });
    const int position =
        view->layout().plan->positionOf[static_cast<std::size_t>(panel)][static_cast<std::size_t>(rank)];
    menu.addAction(tr("&Select this gap"), this, [this, gap, position] {
        m_workspace.viewState()->setAreas({{gap, position, position}});
    });
    menu.addAction(tr("Select it on &every rank"), this,
                   [this, gap, last = static_cast<int>(view->layout().plan->rankAt.size()) - 1] {
                       m_workspace.viewState()->setAreas({{gap, 0, last}});
                   });
    menu.addSeparator();
    for (const ActionId id : {"previousGap", "nextGap", "fit"}) menu.addAction(m_workspace.actions()[id]);
}

namespace {

void showByHost(const ShowRequest& request)
{
    RowSettings rows = request.workspace.viewState()->rows();
    rows.grouping = Grouping::Host;
    request.workspace.viewState()->setRows(rows);
}

// The last rank pinned, the second folded, the first group open.
void showRows(const ShowRequest& request)
{
    RowSettings rows = request.workspace.viewState()->rows();
    const int ranks = static_cast<int>(request.workspace.views().timeline->layout().plan->rankAt.size());
    rows.pinned = {ranks - 1};
    rows.collapsed = {1};
    rows.expanded = {0};
    rows.waits = true;
    request.workspace.viewState()->setRows(rows);
}

} // namespace

std::vector<ShowEntry> RowsController::showTable()
{
    return {
        {.name = "rows", .at = 210, .view = &showRows},
        {.name = "by-host", .at = 340, .view = &showByHost},
    };
}

FeatureEntry rowsFeature() { return featureEntry<RowsController>(); }

} // namespace stagewright
