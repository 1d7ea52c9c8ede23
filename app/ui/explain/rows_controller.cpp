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
    {ActionId::GroupAuto, Grouping::Automatic, 0, "automatic"},
    {ActionId::GroupNone, Grouping::None, 0, "none"},
    {ActionId::GroupOf8, Grouping::Count, 8, "8"},
    {ActionId::GroupOf32, Grouping::Count, 32, "32"},
    {ActionId::GroupOf128, Grouping::Count, 128, "128"},
    {ActionId::GroupStage, Grouping::Stage, 0, "stage"},
    {ActionId::GroupBusy, Grouping::Busy, 0, "busy"},
    {ActionId::GroupHost, Grouping::Host, 0, "host"},
    {ActionId::GroupPipeline, Grouping::Pipeline, 0, "pipeline"},
    {ActionId::GroupData, Grouping::Data, 0, "data"},
    {ActionId::GroupTensor, Grouping::Tensor, 0, "tensor"},
    {ActionId::GroupExpert, Grouping::Expert, 0, "expert"},
    {ActionId::GroupContext, Grouping::Context, 0, "context"},
    {ActionId::GroupReplica, Grouping::Replica, 0, "replica"},
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

constexpr std::pair<ActionId, TimeUnit> units[] = {{ActionId::UnitAuto, TimeUnit::Automatic},
                                                   {ActionId::UnitNanos, TimeUnit::Nanoseconds},
                                                   {ActionId::UnitMicros, TimeUnit::Microseconds},
                                                   {ActionId::UnitMillis, TimeUnit::Milliseconds},
                                                   {ActionId::UnitSeconds, TimeUnit::Seconds}};

} // namespace

RowsController::RowsController(Workspace& workspace) : Feature(workspace)
{
    using I = ActionId;
    Actions& a = workspace.actions();
    TimelineView* view = workspace.views().timeline;
    ViewState* state = workspace.viewState();
    const auto on = [&](I id, auto slot) { connect(a[id], &QAction::triggered, this, slot); };
    auto* exclusive = new QActionGroup(this);
    for (const GroupingChoice& choice : groupings) {
        exclusive->addAction(a[choice.action]);
        on(choice.action, [this, choice] { setGrouping(choice.grouping, choice.size); });
    }
    on(I::GroupRange, [state](bool wanted) {
        RowSettings rows = state->rows();
        rows.look = wanted ? GroupLook::Range : GroupLook::Kinds;
        state->setRows(rows);
    });
    on(I::SubLanes, [state](bool wanted) {
        RowSettings rows = state->rows();
        rows.lanes = wanted;
        state->setRows(rows);
    });
    on(I::KernelClasses, [this](bool wanted) {
        QSettings().setValue(QStringLiteral("rows/classes"), wanted);
        m_workspace.library()->setKernelsByClass(wanted);
        m_workspace.shown().showAgain();
    });
    on(I::WaitLanes, [state](bool wanted) {
        RowSettings rows = state->rows();
        rows.waits = wanted;
        state->setRows(rows);
    });
    on(I::PinRank, [this] { toggleRanks(&RowSettings::pinned); });
    on(I::FoldRank, [this] { toggleRanks(&RowSettings::collapsed); });
    on(I::RankTrack, [this] { toggleRanks(&RowSettings::trackless); });
    on(I::OpenGroup, [view] { view->toggleGroup(view->cursorRow()); });
    on(I::RowUp, [view] {
        view->setFocus();
        view->moveCursor(-1);
    });
    on(I::RowDown, [view] {
        view->setFocus();
        view->moveCursor(1);
    });
    on(I::ResetRows, [state] {
        RowSettings rows = state->rows();
        rows.pinned.clear();
        rows.collapsed.clear();
        rows.trackless.clear();
        rows.expanded.clear();
        state->setRows(rows);
    });
    on(I::RowsTaller, [this] { scaleRows(1); });
    on(I::RowsLower, [this] { scaleRows(-1); });
    on(I::RowsAutomatic, [this] { setRowScale(0); });
    connect(view, &TimelineView::rowScaleAsked, this, &RowsController::scaleRows);
    workspace.room().rows()->installEventFilter(this);
    auto* origins = new QActionGroup(this);
    for (const auto& [id, origin] : {std::pair{I::TimeRelative, TimeOrigin::Step}, {I::TimeAbsolute, TimeOrigin::Run}}) {
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
    m_workspace.actions()[ActionId::KernelClasses]->setChecked(classes);
    m_rowScale = settings.value(QStringLiteral("rows/scale"), 0).toDouble();
    if (m_rowScale != 0) m_rowScale = std::clamp(m_rowScale, leastRowScale, mostRowScale);
    const bool absolute = settings.value(QStringLiteral("times/absolute"), false).toBool();
    m_workspace.viewState()->setTimeOrigin(absolute ? TimeOrigin::Run : TimeOrigin::Step);
    m_workspace.actions()[absolute ? ActionId::TimeAbsolute : ActionId::TimeRelative]->setChecked(true);
    refreshUnit();
}

// Rows of 48 px, or 38 px in a comparison, fill a window of 1000 px; a taller window enlarges them while all stay visible.
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

void RowsController::scaleRows(double notches) { setRowScale(m_workspace.views().timeline->rowScale() * std::pow(1.15, notches)); }

bool RowsController::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_workspace.room().rows() && event->type() == QEvent::Resize) QMetaObject::invokeMethod(this, &RowsController::fitRows, Qt::QueuedConnection);
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
        if (choice.grouping == rows.grouping && choice.size == rows.groupSize) settings.setValue(QStringLiteral("rows/grouping"), QString::fromLatin1(choice.key));
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
    using I = ActionId;
    Actions& a = m_workspace.actions();
    const TimelineView* view = m_workspace.views().timeline;
    const RowSettings& rows = m_workspace.viewState()->rows();
    const bool shown = !view->panels().empty();
    for (const GroupingChoice& choice : groupings) {
        const bool possible = std::any_of(view->panels().begin(), view->panels().end(), [&](const auto& panel) { return canGroup(*panel, choice.grouping); });
        a[choice.action]->setEnabled(shown && possible);
        if (choice.grouping == rows.grouping && choice.size == rows.groupSize) a[choice.action]->setChecked(true);
    }
    a[I::GroupRange]->setChecked(rows.look == GroupLook::Range);
    a[I::SubLanes]->setChecked(rows.lanes);
    a[I::WaitLanes]->setChecked(rows.waits);
    a[I::KernelClasses]->setEnabled(std::any_of(view->panels().begin(), view->panels().end(), [](const auto& panel) {
        return !panel->noOps && std::any_of(panel->ranks.begin(), panel->ranks.end(), [](const PanelRank& rank) { return std::any_of(rank.lanes.begin(), rank.lanes.end(), [](const PanelLane& lane) { return lane.lane == Lane::Kernel || lane.lane == Lane::Copy || lane.lane == Lane::Other; }); });
    }));
    const std::vector<int> ranks = view->chosenRanks();
    const auto mark = [&](I id, const std::set<int>& of) {
        a[id]->setEnabled(!ranks.empty());
        a[id]->setChecked(!ranks.empty() && std::all_of(ranks.begin(), ranks.end(), [&](int rank) { return of.count(rank) != 0; }));
    };
    mark(I::PinRank, rows.pinned);
    mark(I::FoldRank, rows.collapsed);
    mark(I::RankTrack, rows.trackless);
    const int row = view->cursorRow();
    a[I::OpenGroup]->setEnabled(row >= 0 && view->layout().rows[static_cast<std::size_t>(row)].group >= 0);
    for (const I id : {I::RowUp, I::RowDown, I::RowsAutomatic}) a[id]->setEnabled(shown);
    a[I::RowsTaller]->setEnabled(shown && view->rowScale() < mostRowScale);
    a[I::RowsLower]->setEnabled(shown && view->rowScale() > leastRowScale);
    a[I::RowsAutomatic]->setChecked(m_rowScale == 0);
    a[I::ResetRows]->setEnabled(!rows.pinned.empty() || !rows.collapsed.empty() || !rows.trackless.empty() || !rows.expanded.empty());
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
    using I = ActionId;
    Actions& a = m_workspace.actions();
    TimelineView* view = m_workspace.views().timeline;
    if (row < 0 || row >= static_cast<int>(view->layout().rows.size())) return;
    const RowPlace& place = view->layout().rows[static_cast<std::size_t>(row)];
    menu.addSection(view->rowText(row));
    if (place.group >= 0) menu.addAction(a[I::OpenGroup]);
    for (const I id : {I::PinRank, I::FoldRank, I::RankTrack}) menu.addAction(a[id]);
    menu.addAction(tr("Select the whole row"), this, [this, first = place.firstPosition, last = place.lastPosition] {
        m_workspace.viewState()->setAreas({{m_workspace.viewState()->extent(), first, last}});
    });
    menu.addSeparator();
    QMenu* groups = menu.addMenu(tr("&Group ranks"));
    for (const GroupingChoice& choice : groupings) groups->addAction(a[choice.action]);
    groups->addSeparator();
    groups->addAction(a[I::GroupRange]);
    for (const I id : {I::SubLanes, I::WaitLanes, I::CommTracks}) menu.addAction(a[id]);
    menu.addSeparator();
    menu.addAction(a[I::ResetRows]);
}

void RowsController::fillGapMenu(QMenu& menu, int panel, int rank, Nanos axisTime)
{
    using I = ActionId;
    TimelineView* view = m_workspace.views().timeline;
    if (panel < 0 || panel >= static_cast<int>(view->panels().size())) return;
    const TimelinePanel& shown = *view->panels()[static_cast<std::size_t>(panel)];
    const LaneData& lane = shown.ranks[static_cast<std::size_t>(rank)].compute;
    const std::size_t next = lane.firstEndingAfter(axisTime);
    const TimeRange gap{next > 0 ? lane.slices()[next - 1].end() : 0, next < lane.size() ? lane.slices()[next].begin() : shown.duration};
    menu.addSection(tr("Idle, rank %1: %2").arg(rank).arg(durationText(gap.duration(), shown.units)));
    QAction* why = menu.addAction(tr("&Explain this gap"), this, [view, panel, rank, axisTime] { emit view->idleClicked(panel, rank, axisTime); });
    why->setEnabled(m_workspace.shown().mode() == Shown::Mode::Run);
    menu.addAction(tr("&Fit this gap"), this, [this, gap] { m_workspace.viewState()->fit(gap); });
    const int position = view->layout().plan->positionOf[static_cast<std::size_t>(panel)][static_cast<std::size_t>(rank)];
    menu.addAction(tr("&Select this gap"), this, [this, gap, position] { m_workspace.viewState()->setAreas({{gap, position, position}}); });
    menu.addAction(tr("Select it on &every rank"), this, [this, gap, last = static_cast<int>(view->layout().plan->rankAt.size()) - 1] {
        m_workspace.viewState()->setAreas({{gap, 0, last}});
    });
    menu.addSeparator();
    for (const I id : {I::PreviousGap, I::NextGap, I::Fit}) menu.addAction(m_workspace.actions()[id]);
}

Feature* rowsFeature(Workspace& workspace) { return new RowsController(workspace); }

} // namespace stagewright
