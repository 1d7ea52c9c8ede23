#include "app/ui/explain/rows_controller.h"

#include <algorithm>
#include <cmath>

#include <QActionGroup>
#include <QMenu>
#include <QSettings>
#include <QSplitter>

#include "app/ui/workspace/workspace.h"
#include "widgets/literals.h"
#include "widgets/preferences/preferences.h"
#include "widgets/sentence.h"
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
        item("rowUp", ActionGroup::Rows, u"Row &above"_s, "Alt+Up",
             u"Moves the row mark in the gutter; the row keys act on the marked row"_s),
        item("rowDown", ActionGroup::Rows, u"Row &below"_s, "Alt+Down",
             u"Moves the row mark in the gutter; the row keys act on the marked row"_s),
        item("pinRank", ActionGroup::Rows, u"&Pin to the top"_s, "Shift+P",
             u"Keeps ranks above the scrolling rows: those of the selected area, the marked row or the selected op"_s,
             {.line = true, .checkable = true}),
        item("foldRank", ActionGroup::Rows, u"&Fold to a thin row"_s, "Shift+C",
             u"Shows a thin row of utilisation, without its track"_s, {.checkable = true}),
        item("rankTrack", ActionGroup::Rows, u"&Hide its comm track"_s, "Shift+T",
             u"For these ranks only; Comm tracks hides all of them"_s, {.checkable = true}),
        item("openGroup", ActionGroup::Rows, u"&Open or fold the group"_s, "Shift+Return",
             u"Shows the group's ranks one by one, or as one row again"_s),
        item("subLanes", ActionGroup::Rows, u"&Kernels and copies"_s, "Shift+K",
             u"Work other than ops, in thin rows under its rank, where the run has any"_s,
             {.line = true, .checkable = true}),
        item("kernelClasses", ActionGroup::Rows, u"Kernels by &class"_s, {},
             u"Colours kernels and copies by what they are, such as matrix products, and ranges by name, "
             "instead of the ops that launched them"_s,
             {.checkable = true}),
        item("waitLanes", ActionGroup::Rows, u"&Waits"_s, {}, u"What each rank waited for, in thin rows under it"_s,
             {.checkable = true}),
        item("rowsTaller", ActionGroup::Rows, u"&Taller rows"_s, "Ctrl+Shift+Up",
             u"Ctrl+Shift+wheel over the timeline; remembered"_s, {.line = true}),
        item("rowsLower", ActionGroup::Rows, u"Sma&ller rows"_s, "Ctrl+Shift+Down",
             u"Ctrl+Shift+wheel over the timeline; remembered"_s),
        item("rowsAutomatic", ActionGroup::Rows, u"Automatic row hei&ght"_s, {},
             u"Taller rows where the window has room"_s, {.checkable = true}),
        item("fitRows", ActionGroup::Rows, u"Fit all ro&ws"_s, "Shift+Home",
             u"Every row in view at once, as thin as that takes; again: the usual height"_s, {.checkable = true}),
        item("resetRows", ActionGroup::Rows, u"&Reset all rows"_s, {},
             u"Unpins and unfolds every rank and shows every track"_s, {.line = true}),
        item("groupAuto", ActionGroup::RowGroups, u"Automatic groups by &number of ranks"_s, {},
             u"No groups up to 64 ranks; above that, at most 32 groups"_s, {.checkable = true}),
        item("groupNone", ActionGroup::RowGroups, u"On&e row per rank"_s, {}, {}, {.checkable = true}),
        item("groupOf8", ActionGroup::RowGroups, u"Groups of &8 ranks"_s, {}, {}, {.checkable = true}),
        item("groupOf32", ActionGroup::RowGroups, u"Groups of &32 ranks"_s, {}, {}, {.checkable = true}),
        item("groupOf128", ActionGroup::RowGroups, u"Groups of &128 ranks"_s, {}, {}, {.checkable = true}),
        item("groupStage", ActionGroup::RowGroups, u"Groups by &stage"_s, {},
             u"Groups ranks that run the same stages"_s, {.checkable = true}),
        item("groupBusy", ActionGroup::RowGroups, u"Groups by b&usy time"_s, {},
             u"Groups ranks that are about equally busy, the idlest first"_s, {.checkable = true}),
        item("groupHost", ActionGroup::RowGroups, u"Groups by h&ost"_s, {},
             u"Groups ranks on the same host, where the trace says"_s, {.checkable = true}),
        item("groupPipeline", ActionGroup::RowGroups, u"Groups by p&ipeline place"_s, {},
             u"Groups ranks with the same place in the pipeline, as the trace's process groups say"_s,
             {.checkable = true}),
        item("groupData", ActionGroup::RowGroups, u"Groups by &data-parallel place"_s, {},
             u"Groups ranks with the same data-parallel place, as the trace's process groups say"_s,
             {.checkable = true}),
        item("groupTensor", ActionGroup::RowGroups, u"Groups by tensor-parallel place"_s, {},
             u"Groups ranks with the same tensor-parallel place, as the trace's process groups say"_s,
             {.checkable = true}),
        item("groupExpert", ActionGroup::RowGroups, u"Groups by e&xpert-parallel place"_s, {},
             u"Groups ranks with the same expert-parallel place, as the trace's process groups say"_s,
             {.checkable = true}),
        item("groupContext", ActionGroup::RowGroups, u"Groups by context-parallel place"_s, {},
             u"Groups ranks with the same context-parallel place, as the trace's process groups say"_s,
             {.checkable = true}),
        item("groupReplica", ActionGroup::RowGroups, u"Replicas under their pipeline rank"_s, {},
             u"Shows the ranks of the first replica, and the other replicas' ranks folded below each"_s,
             {.checkable = true}),
        item("groupRange", ActionGroup::RowGroups, u"&Mean, minimum and maximum in groups"_s, {},
             u"A group's row shows how busy its ranks are: mean, idlest and busiest; otherwise the mean time "
             "of each kind"_s,
             {.line = true, .checkable = true}),
        item("timeRelative", ActionGroup::Times, u"From the &start of the step"_s, {}, u"Every step starts at zero"_s,
             {.checkable = true}),
        item("timeAbsolute", ActionGroup::Times, u"From the start of the &run"_s, {}, u"Time since the run started"_s,
             {.checkable = true}),
        item("unitAuto", ActionGroup::Times, u"&Automatic unit"_s, {},
             u"Each time in the unit that leaves one to three digits before the decimal point"_s,
             {.line = true, .checkable = true}),
        item("unitNanos", ActionGroup::Times, u"&Nanoseconds"_s, {}, {}, {.checkable = true}),
        item("unitMicros", ActionGroup::Times, u"Mi&croseconds"_s, {}, {}, {.checkable = true}),
        item("unitMillis", ActionGroup::Times, u"&Milliseconds"_s, {}, {}, {.checkable = true}),
        item("unitSeconds", ActionGroup::Times, u"S&econds"_s, {}, {}, {.checkable = true}),
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
        QSettings().setValue(u"rows/classes"_s, wanted);
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
    on("openGroup", [view, state] { toggleGroup(*state, view->scene(), view->rowCursor().row()); });
    on("rowUp", [view] {
        view->setFocus();
        view->rowCursor().move(-1);
    });
    on("rowDown", [view] {
        view->setFocus();
        view->rowCursor().move(1);
    });
    on("resetRows", [state] {
        RowSettings rows = state->rows();
        rows.pinned.clear();
        rows.collapsed.clear();
        rows.trackless.clear();
        rows.expanded.clear();
        rows.thinStreams.clear();
        state->setRows(rows);
    });
    on("rowsTaller", [this] { scaleRows(1); });
    on("rowsLower", [this] { scaleRows(-1); });
    on("rowsAutomatic", [this] { setRowScale(0); });
    on("fitRows", [this](bool wanted) {
        m_fitsAll = wanted;
        fitRows();
        refresh();
    });
    connect(&view->input(), &TimelineInput::rowScaleAsked, this, &RowsController::scaleRows);
    workspace.room().rows()->installEventFilter(this);
    auto* origins = new QActionGroup(this);
    for (const auto& [id, origin] : {std::pair{"timeRelative", TimeOrigin::Step}, {"timeAbsolute", TimeOrigin::Run}}) {
        origins->addAction(a[id]);
        on(id, [state, origin = origin] {
            QSettings().setValue(u"times/absolute"_s, origin == TimeOrigin::Run);
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
    connect(&view->rowCursor(), &RowCursor::moved, this, &RowsController::refresh);
    connect(&view->input(), &TimelineInput::rowMenuAsked, this, [this](const QPoint& at, int row) {
        QMenu menu(m_workspace.window());
        fillRowMenu(menu, row);
        menu.exec(at);
    });
    connect(&view->input(), &TimelineInput::gapMenuAsked, this,
            [this](const QPoint& at, int panel, int rank, Nanos time) {
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
    const QString grouping = settings.value(u"rows/grouping"_s).toString();
    for (const GroupingChoice& choice : groupings) {
        if (grouping != QLatin1String(choice.key)) continue;
        rows.grouping = choice.grouping;
        rows.groupSize = choice.size;
    }
    rows.look = settings.value(u"rows/range"_s, false).toBool() ? GroupLook::Range : GroupLook::Kinds;
    rows.lanes = settings.value(u"rows/lanes"_s, true).toBool();
    rows.waits = settings.value(u"rows/waits"_s, false).toBool();
    m_workspace.viewState()->setRows(rows);
    const bool classes = settings.value(u"rows/classes"_s, false).toBool();
    m_workspace.library()->setKernelsByClass(classes);
    m_workspace.actions()["kernelClasses"]->setChecked(classes);
    m_rowScale = settings.value(u"rows/scale"_s, 0).toDouble();
    if (m_rowScale != 0) m_rowScale = std::clamp(m_rowScale, leastRowScale, mostRowScale);
    const bool absolute = settings.value(u"times/absolute"_s, false).toBool();
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
    const RowLayout& rows = view->scene().rows;
    if (wanted == 1 || rows.rows.empty()) return 1;
    const double bars =
        static_cast<double>(rows.rows.size()) * rows.metrics.height / view->rowSizes().scale; // at scale 1
    const double rest = view->scene().contentHeight() + 8 - bars * view->rowSizes().scale;
    const double share = room * (view->panels().size() > 1 ? 0.72 : 0.62);
    return std::clamp((share - rest) / std::max(1.0, bars), 1.0, wanted);
}

double RowsController::wholeScale() const
{
    const TimelineView* view = m_workspace.views().timeline;
    const TimelineScene& scene = view->scene();
    if (scene.rows.plan == nullptr || scene.rows.rows.empty()) return 1;
    const double usual = scene.rows.metrics.height / view->rowSizes().scale;
    const bool headers = scene.panels.size() > 1;
    for (double height = usual; height > usual * leastRowScale; --height) // whole pixels, as they are drawn
        if (layoutRows(scene.rows.plan, rowMetrics(std::round(height), scene.showCommunication), headers).height <=
            scene.rowsRect().height())
            return std::round(height) / usual;
    return leastRowScale;
}

void RowsController::fitRows()
{
    TimelineView* view = m_workspace.views().timeline;
    const double scale = m_fitsAll ? wholeScale() : m_rowScale > 0 ? m_rowScale : suitableScale();
    if (std::abs(scale - view->rowSizes().scale) < 0.005) return;
    view->setRowSizes({0, scale, view->rowSizes().track});
    if (!m_fitsAll) m_workspace.shown().splitViews(); // else the rows take the room that they have
}

void RowsController::setRowScale(double scale)
{
    m_fitsAll = false;
    m_rowScale = scale == 0 ? 0 : std::clamp(scale, leastRowScale, mostRowScale);
    QSettings().setValue(u"rows/scale"_s, m_rowScale);
    fitRows();
    refresh();
}

void RowsController::scaleRows(double notches)
{
    setRowScale(m_workspace.views().timeline->rowSizes().scale * std::pow(1.15, notches));
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
            settings.setValue(u"rows/grouping"_s, QString::fromLatin1(choice.key));
    settings.setValue(u"rows/range"_s, rows.look == GroupLook::Range);
    settings.setValue(u"rows/lanes"_s, rows.lanes);
    settings.setValue(u"rows/waits"_s, rows.waits);
    if (m_ranks == 0) return;
    settings.beginGroup(u"rows/%1"_s.arg(m_ranks));
    settings.setValue(u"pinned"_s, listOf(rows.pinned));
    settings.setValue(u"folded"_s, listOf(rows.collapsed));
    settings.setValue(u"trackless"_s, listOf(rows.trackless));
    settings.setValue(u"open"_s, listOf(rows.expanded));
    QStringList streams;
    for (const auto& [rank, stream] : rows.thinStreams) streams << u"%1 %2"_s.arg(rank).arg(qtText(stream));
    settings.setValue(u"streams"_s, streams);
    settings.endGroup();
}

void RowsController::runChanged()
{
    std::size_t ranks = 0;
    for (const auto& panel : m_workspace.views().timeline->panels()) ranks = std::max(ranks, panel->ranks.size());
    if (static_cast<int>(ranks) != m_ranks && ranks > 0) {
        m_ranks = static_cast<int>(ranks);
        QSettings settings;
        settings.beginGroup(u"rows/%1"_s.arg(m_ranks));
        RowSettings rows = m_workspace.viewState()->rows();
        rows.pinned = setOf(settings.value(u"pinned"_s));
        rows.collapsed = setOf(settings.value(u"folded"_s));
        rows.trackless = setOf(settings.value(u"trackless"_s));
        rows.expanded = setOf(settings.value(u"open"_s));
        rows.thinStreams.clear();
        for (const QString& one : settings.value(u"streams"_s).toStringList())
            rows.thinStreams.emplace(one.section(u' ', 0, 0).toInt(), one.section(u' ', 1).toStdString());
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
    const std::vector<int> ranks = view->rowCursor().chosenRanks();
    const auto mark = [&](ActionId id, const std::set<int>& of) {
        a[id]->setEnabled(!ranks.empty());
        a[id]->setChecked(!ranks.empty() &&
                          std::all_of(ranks.begin(), ranks.end(), [&](int rank) { return of.count(rank) != 0; }));
    };
    mark("pinRank", rows.pinned);
    mark("foldRank", rows.collapsed);
    mark("rankTrack", rows.trackless);
    const int row = view->rowCursor().row();
    a["openGroup"]->setEnabled(row >= 0 && view->scene().place(row).group >= 0);
    for (const ActionId id : {"rowUp", "rowDown", "rowsAutomatic"}) a[id]->setEnabled(shown);
    a["rowsTaller"]->setEnabled(shown && view->rowSizes().scale < mostRowScale);
    a["rowsLower"]->setEnabled(shown && view->rowSizes().scale > leastRowScale);
    a["rowsAutomatic"]->setChecked(m_rowScale == 0 && !m_fitsAll);
    a["fitRows"]->setEnabled(shown);
    a["fitRows"]->setChecked(m_fitsAll);
    a["resetRows"]->setEnabled(!rows.pinned.empty() || !rows.collapsed.empty() || !rows.trackless.empty() ||
                               !rows.expanded.empty() || !rows.thinStreams.empty());
}

// All of them if one is not yet, else none.
void RowsController::toggleRanks(std::set<int> RowSettings::*of)
{
    const std::vector<int> ranks = m_workspace.views().timeline->rowCursor().chosenRanks();
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
    if (row < 0 || row >= static_cast<int>(view->scene().rows.rows.size())) return;
    const RowPlace& place = view->scene().place(row);
    menu.addAction(rowText(view->scene(), row))->setEnabled(false); // a section has no title in our style
    menu.addSeparator();
    if (place.group >= 0) menu.addAction(a["openGroup"]);
    for (const ActionId id : {"pinRank", "foldRank", "rankTrack"}) menu.addAction(a[id]);
    menu.addAction(u"Select the whole row"_s, this, [this, first = place.firstPosition, last = place.lastPosition] {
        m_workspace.viewState()->setAreas({{m_workspace.viewState()->extent(), first, last}});
    });
    menu.addSeparator();
    QMenu* groups = menu.addMenu(u"&Group ranks"_s);
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
    const TimelinePanel& shown = view->scene().panel(panel);
    const LaneData& lane = shown.ranks[static_cast<std::size_t>(rank)].compute;
    const std::size_t next = lane.firstEndingAfter(axisTime);
    const TimeRange gap{next > 0 ? lane.slices()[next - 1].end() : 0,
                        next < lane.size() ? lane.slices()[next].begin() : shown.duration};
    menu.addAction(u"Idle, rank %1: %2"_s.arg(rank).arg(durationText(gap.duration(), shown.units)))->setEnabled(false);
    menu.addSeparator();
    QAction* why = menu.addAction(u"&Explain this gap"_s, this, [view, panel, rank, axisTime] {
        emit view->selection().idleClicked(panel, rank, axisTime);
    });
    why->setEnabled(m_workspace.shown().mode() == Shown::Mode::Run);
    menu.addAction(u"&Fit this gap"_s, this, [this, gap] { m_workspace.viewState()->fit(gap); });
    const int position =
        view->scene().rows.plan->positionOf[static_cast<std::size_t>(panel)][static_cast<std::size_t>(rank)];
    menu.addAction(u"&Select this gap"_s, this, [this, gap, position] {
        m_workspace.viewState()->setAreas({{gap, position, position}});
    });
    menu.addAction(u"Select it on &every rank"_s, this,
                   [this, gap, last = static_cast<int>(view->scene().rows.plan->rankAt.size()) - 1] {
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
    const int ranks = static_cast<int>(request.workspace.views().timeline->scene().rows.plan->rankAt.size());
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
        {"rows", 210, &showRows},
        {"by-host", 340, &showByHost},
    };
}

FeatureEntry rowsFeature() { return featureEntry<RowsController>(); }

} // namespace stagewright
