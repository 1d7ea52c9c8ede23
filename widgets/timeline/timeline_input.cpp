// TimelineView: keys and mouse.
#include <algorithm>
#include <cmath>

#include <QContextMenuEvent>
#include <QMouseEvent>
#include <QTimer>
#include <QWheelEvent>

#include "traces/analysis/kernels.h"
#include "widgets/hover_card.h"
#include "widgets/timeline/frame_worker.h"
#include "widgets/timeline/list_place.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

namespace {

constexpr double edgeReach = 4; // px around an area's edge
constexpr double snapReach = 6;
constexpr double zoomStep = 1.25;

} // namespace

// --- hovering -------------------------------------------------------------------------------------------------------

void TimelineView::hoverAt(QPointF point)
{
    const Axis& axis = m_scene.axis;
    const bool inPlot =
        point.x() >= axis.left && point.x() < axis.left + axis.width + rightMargin && rect().contains(point.toPoint());
    if (!inPlot || axis.degenerate() || m_scene.panels.empty()) {
        m_state->setHoverTime(std::nullopt);
        m_state->setHovered({});
        if (m_card) m_card->hide();
        return;
    }
    const Nanos time = axis.toTime(point.x());
    m_state->setHoverTime(time);
    const SpanRef ref = m_scene.spanAt(point);
    MicrobatchRef microbatch;
    CardText card;
    if (ref.valid()) {
        const TimelinePanel& panel = *m_scene.panels[static_cast<std::size_t>(ref.panel)];
        const Span& span = panel.timeline->spans()[ref.span];
        microbatch = {span.op.microbatch, span.step - std::max(0, panel.step)};
        if (span.label != 0 && span.op.microbatch < 0) { // of the op that launched it
            if (const SpanId by = launchOf(*panel.timeline, ref.span).by; by != noSpan)
                microbatch.microbatch = panel.timeline->spans()[by].op.microbatch;
        }
        card = cardOf(ref);
    } else if (const int row = m_scene.rowUnder(point.y()); row >= 0) {
        const RowPlace& place = m_scene.place(row);
        if (place.kind == RowKind::Group) {
            card = groupCard(place, time);
        } else if (point.y() < m_scene.rowTop(row) + place.height) {
            card = place.device ? deviceCard(*m_scene.panels[static_cast<std::size_t>(place.panel)], place.rankIndex,
                                             time, m_state->timeOrigin())
                                : idleCard(*m_scene.panels[static_cast<std::size_t>(place.panel)], place.rankIndex,
                                           time, m_causes, m_state->timeOrigin());
        }
    }
    m_state->setHovered(ref, microbatch.valid() ? microbatch : MicrobatchRef{});
    if (!m_card) m_card = new HoverCard(this);
    if (m_drag.kind == Drag::None || m_drag.kind == Drag::Pending) {
        m_card->showAt(mapToGlobal(point.toPoint()), card, *m_theme);
    } else {
        m_card->hide();
    }
}

void TimelineView::leaveEvent(QEvent*)
{
    m_state->setHoverTime(std::nullopt);
    m_state->setHovered({});
    if (m_card) m_card->hide();
}

void TimelineView::updateCursor(QPointF point)
{
    if (areaEdgeAt(point)) {
        setCursor(Qt::SizeHorCursor);
    } else if (m_editMode && m_scene.spanAt(point).valid()) {
        setCursor(m_drag.kind == Drag::Op ? Qt::ClosedHandCursor : Qt::OpenHandCursor);
    } else {
        unsetCursor();
    }
}

// --- areas ----------------------------------------------------------------------------------------------------------

Nanos TimelineView::snapped(double x, int first, int last) const
{
    const Nanos time = m_scene.axis.toTime(x);
    const double reach = snapReach * m_scene.axis.nanosPerPixel();
    double best = reach;
    Nanos found = time;
    const auto consider = [&](Nanos edge) {
        const double distance = std::abs(static_cast<double>(edge - time));
        if (distance <= best) {
            best = distance;
            found = edge;
        }
    };
    const auto& ranks = m_plan->rankAt;
    for (int at = std::max(0, first); at <= std::min(last, static_cast<int>(ranks.size()) - 1); ++at) {
        const auto [panel, rankIndex] = ranks[static_cast<std::size_t>(at)];
        const LaneData& lane =
            m_scene.panels[static_cast<std::size_t>(panel)]->ranks[static_cast<std::size_t>(rankIndex)].compute;
        const std::size_t next = lane.firstEndingAfter(time);
        for (std::size_t i = next > 0 ? next - 1 : 0; i < std::min(lane.size(), next + 2); ++i) {
            consider(lane.slices()[i].begin());
            consider(lane.slices()[i].end());
        }
    }
    return found;
}

AreaSelection TimelineView::areaBetween(QPointF a, QPointF b) const
{
    AreaSelection area;
    const RowPlace& first = m_scene.place(m_scene.nearestRow(a.y()));
    const RowPlace& last = m_scene.place(m_scene.nearestRow(b.y()));
    area.firstRow = std::min(first.firstPosition, last.firstPosition);
    area.lastRow = std::max(first.lastPosition, last.lastPosition);
    const double left = m_scene.axis.left, right = left + m_scene.axis.width;
    // each end to the ops of its own row
    const Nanos t1 = snapped(std::clamp(a.x(), left, right), first.firstPosition, first.lastPosition);
    const Nanos t2 = snapped(std::clamp(b.x(), left, right), last.firstPosition, last.lastPosition);
    area.range = {std::min(t1, t2), std::max(t1, t2)};
    return area;
}

std::optional<std::pair<std::size_t, bool>> TimelineView::areaEdgeAt(QPointF point) const
{
    const auto& areas = m_state->areas();
    for (std::size_t i = areas.size(); i-- > 0;) {
        const auto pinned = m_scene.rectsOf(areas[i], true), scrolled = m_scene.rectsOf(areas[i], false);
        const auto holds = [&](const QRectF& rect) { return point.y() >= rect.top() && point.y() <= rect.bottom(); };
        const bool isPinned = m_scene.pinnedRect().contains(point) && m_scene.rows.pinned > 0;
        if (isPinned ? std::none_of(pinned.begin(), pinned.end(), holds)
                     : std::none_of(scrolled.begin(), scrolled.end(), holds))
            continue;
        if (std::abs(point.x() - m_scene.axis.toX(areas[i].range.end)) <= edgeReach) return std::make_pair(i, true);
        if (std::abs(point.x() - m_scene.axis.toX(areas[i].range.begin)) <= edgeReach) return std::make_pair(i, false);
    }
    return std::nullopt;
}

void TimelineView::emitAreas() { emit areaAggregated(aggregation()); }

// --- mouse ----------------------------------------------------------------------------------------------------------

void TimelineView::mousePressEvent(QMouseEvent* event)
{
    setFocus(Qt::MouseFocusReason);
    if (m_drag.kind != Drag::None || m_scene.panels.empty()) return;
    if (event->button() != Qt::LeftButton && event->button() != Qt::MiddleButton) return;
    m_drag = {};
    m_drag.kind = Drag::Pending;
    m_drag.button = event->button();
    m_drag.modifiers = event->modifiers();
    m_drag.from = event->position();
    m_drag.rangeAtStart = m_state->visible();
    m_drag.scrollAtStart = m_scene.scroll;
    m_drag.areasAtStart = m_state->areas();
    if (event->button() == Qt::LeftButton) {
        if (const auto edge = areaEdgeAt(event->position())) {
            m_drag.kind = Drag::AreaEdge;
            m_drag.area = edge->first;
            m_drag.movesEnd = edge->second;
        } else if (m_editMode && (event->modifiers() & (Qt::ShiftModifier | Qt::ControlModifier)) == 0) {
            const SpanRef ref = m_scene.spanAt(event->position());
            const int position =
                ref.valid() ? m_scene.panels[static_cast<std::size_t>(ref.panel)]->positionOf(ref.span) : -1;
            if (position >= 0) {
                m_drag.span = ref;
                m_drag.rank = m_scene.panels[static_cast<std::size_t>(ref.panel)]->timeline->trackOf(ref.span).rank;
                m_drag.position = position;
                m_state->select(ref);
                emit opPressed(ref, m_drag.rank, position);
            }
        }
    }
    event->accept();
}

void TimelineView::beginDrag()
{
    if (m_drag.span.valid()) {
        m_drag.kind = Drag::Op;
        setCursor(Qt::ClosedHandCursor);
    } else if (m_drag.button == Qt::MiddleButton) {
        m_drag.kind = Drag::Zoom;
    } else if ((m_drag.modifiers & Qt::ShiftModifier) != 0) {
        m_drag.kind = Drag::Pan;
        setCursor(Qt::ClosedHandCursor);
    } else if (m_drag.from.x() >= m_scene.axis.left && !m_scene.rows.rows.empty()) {
        m_drag.kind = Drag::Area;
    } else {
        m_drag.kind = Drag::None;
    }
    if (m_card) m_card->hide();
}

void TimelineView::mouseMoveEvent(QMouseEvent* event)
{
    const QPointF at = event->position();
    if (m_drag.kind == Drag::Pending && (at - m_drag.from).manhattanLength() >= dragThreshold) beginDrag();
    if (m_drag.kind != Drag::None && m_drag.kind != Drag::Pending) moveDrag(at);
    if (m_drag.kind != Drag::Op && m_drag.kind != Drag::Pan) hoverAt(at);
    if (m_drag.kind == Drag::None) updateCursor(at);
}

void TimelineView::moveDrag(QPointF at)
{
    const Axis& axis = m_scene.axis;
    switch (m_drag.kind) {
    case Drag::Area: {
        std::vector<AreaSelection> areas;
        if ((m_drag.modifiers & Qt::ControlModifier) != 0) areas = m_drag.areasAtStart;
        areas.push_back(areaBetween(m_drag.from, at));
        m_state->setAreas(std::move(areas));
        break;
    }
    case Drag::AreaEdge: {
        std::vector<AreaSelection> areas = m_drag.areasAtStart;
        if (m_drag.area >= areas.size()) break;
        AreaSelection& area = areas[m_drag.area];
        const double x = std::clamp(at.x(), axis.left, axis.left + axis.width);
        const Nanos time = snapped(x, area.firstRow, area.lastRow);
        const Nanos other = m_drag.movesEnd ? area.range.begin : area.range.end;
        area.range = {std::min(time, other), std::max(time, other)};
        m_state->setAreas(std::move(areas));
        break;
    }
    case Drag::Pan: {
        // Whole device pixels, so that nothing shimmers.
        m_state->setVisible(pannedBy(m_drag.rangeAtStart, m_drag.from.x() - at.x(), axis.width, devicePixelRatioF()),
                            false);
        setScrollTop(m_drag.scrollAtStart - (at.y() - m_drag.from.y()));
        break;
    }
    case Drag::Zoom: {
        const Nanos t1 = axis.toTime(std::clamp(m_drag.from.x(), axis.left, axis.left + axis.width));
        const Nanos t2 = axis.toTime(std::clamp(at.x(), axis.left, axis.left + axis.width));
        m_scene.zoomBox = TimeRange{std::min(t1, t2), std::max(t1, t2)};
        update();
        break;
    }
    case Drag::Op: dragOp(at); break;
    case Drag::None:
    case Drag::Pending: break;
    }
}

// Before the first compute span with its middle to the right of the pointer; `dragged` is not counted, nor are spans of
// other steps than its.
int TimelineView::positionAt(const TimelinePanel& panel, int rank, QPointF at, SpanId dragged) const
{
    const LaneData& lane = panel.ranks[static_cast<std::size_t>(rank)].compute;
    if (m_scene.axis.degenerate()) return static_cast<int>(lane.size()); // nothing is drawn yet
    const auto spans = panel.timeline->spans();
    const Nanos pointer = m_scene.axis.toTime(at.x());
    if (hasListPlaces(panel, rank)) return listPlaceAt(panel, rank, pointer, dragged);
    int to = 0;
    for (std::size_t i = 0; i < lane.size(); ++i) {
        const Slice& slice = lane.slices()[i];
        const SpanId id = lane.spanOf(i);
        if (id == dragged || slice.discarded != 0 || !ruleOf(slice.opKind()).computeOnly) continue;
        if (dragged != noSpan && spans[id].step != spans[dragged].step) continue;
        if ((slice.begin() + slice.end()) / 2 < pointer) ++to;
    }
    return to;
}

std::optional<TimelineView::DropPlace> TimelineView::dropPlace(QPointF at) const
{
    if (!QRectF(rect()).contains(at) || at.x() < m_scene.axis.left || m_scene.panels.empty()) return std::nullopt;
    const int row = m_scene.rowUnder(at.y());
    if (row < 0 || m_scene.place(row).kind == RowKind::Group) return std::nullopt;
    const RowPlace& place = m_scene.place(row);
    const TimelinePanel& panel = *m_scene.panels[static_cast<std::size_t>(place.panel)];
    return DropPlace{place.panel, panel.ranks[static_cast<std::size_t>(place.rankIndex)].rank,
                     positionAt(panel, place.rankIndex, at, noSpan)};
}

// The rank and place under the pointer.
void TimelineView::dragOp(QPointF at)
{
    const TimelinePanel& panel = *m_scene.panels[static_cast<std::size_t>(m_drag.span.panel)];
    const int row = m_scene.nearestRow(at.y());
    int rank = m_drag.rank;
    if (row >= 0 && m_scene.place(row).panel == m_drag.span.panel && m_scene.place(row).kind != RowKind::Group) {
        rank = panel.ranks[static_cast<std::size_t>(m_scene.rows.rows[static_cast<std::size_t>(row)].rankIndex)].rank;
    }
    const int to = positionAt(panel, rank, at, m_drag.span.span);
    if (rank == m_drag.toRank && to == m_drag.to) {
        update();
        return;
    }
    m_drag.toRank = rank;
    m_drag.to = to;
    emit opDragged(m_drag.span, m_drag.rank, m_drag.position, rank, to);
}

void TimelineView::mouseReleaseEvent(QMouseEvent* event)
{
    if (m_drag.kind == Drag::None || event->button() != m_drag.button) return;
    endDrag(event->position());
    updateCursor(event->position());
}

void TimelineView::endDrag(QPointF at)
{
    const DragState drag = m_drag;
    m_drag = {};
    switch (drag.kind) {
    case Drag::Pending: // a click
        if (drag.button == Qt::LeftButton && at.x() < gutterFor(width()) - 12) {
            gutterClicked(at);
        } else if (drag.button == Qt::LeftButton) {
            const SpanRef ref = m_scene.spanAt(at);
            if (ref.valid() && m_editMode && (drag.modifiers & Qt::ControlModifier) != 0) {
                emit opToggled(ref);
            } else if (ref.valid()) {
                m_state->select(ref);
            } else if ((drag.modifiers & Qt::ControlModifier) == 0) {
                m_state->clearSelection();
                const int row = m_scene.rowUnder(at.y());
                if (row >= 0 && at.x() >= m_scene.axis.left && m_scene.place(row).kind != RowKind::Group) {
                    const RowPlace& place = m_scene.place(row);
                    emit idleClicked(place.panel,
                                     m_scene.panels[static_cast<std::size_t>(place.panel)]
                                         ->ranks[static_cast<std::size_t>(place.rankIndex)]
                                         .rank,
                                     m_scene.axis.toTime(at.x()));
                }
            }
            if (drag.span.valid()) emit opDragCancelled();
        }
        break;
    case Drag::Zoom:
        if (m_scene.zoomBox && !m_scene.zoomBox->empty()) m_state->setVisible(*m_scene.zoomBox);
        m_scene.zoomBox.reset();
        break;
    case Drag::Pan: m_state->rememberVisible(); break;
    case Drag::Op:
        if (drag.toRank >= 0 && (drag.toRank != drag.rank || drag.to != drag.position)) {
            emit opDropped(drag.span, drag.rank, drag.position, drag.toRank, drag.to);
        } else {
            emit opDragCancelled();
        }
        setDragFeedback(std::nullopt);
        break;
    case Drag::Area:
    case Drag::AreaEdge:
    case Drag::None: break;
    }
    unsetCursor();
    update();
}

void TimelineView::cancelDrag()
{
    const DragState drag = m_drag;
    m_drag = {};
    m_scene.zoomBox.reset();
    switch (drag.kind) {
    case Drag::Area:
    case Drag::AreaEdge: m_state->setAreas(drag.areasAtStart); break;
    case Drag::Pan:
        m_state->setVisible(drag.rangeAtStart, false);
        setScrollTop(drag.scrollAtStart);
        break;
    case Drag::Pending:
    case Drag::Op:
        if (drag.span.valid()) emit opDragCancelled();
        setDragFeedback(std::nullopt);
        break;
    case Drag::Zoom:
    case Drag::None: break;
    }
    unsetCursor();
    update();
}

void TimelineView::mouseDoubleClickEvent(QMouseEvent* event)
{
    if (event->button() != Qt::LeftButton) return;
    const SpanRef ref = m_scene.spanAt(event->position());
    if (!ref.valid()) {
        const int row = m_scene.rowUnder(event->position().y());
        if (row < 0) return;
        if (m_scene.place(row).kind == RowKind::Group && event->position().x() >= gutterFor(width()) - 12) {
            toggleGroup(row);
        } else if (m_scene.place(row).kind != RowKind::Group && event->position().x() < gutterFor(width()) - 12) {
            // folds the rank, or opens it
            RowSettings rows = m_state->rows();
            const int rank = m_scene.rankOf(m_scene.place(row)).rank;
            if (rows.collapsed.erase(rank) == 0) rows.collapsed.insert(rank);
            m_state->setRows(rows);
        }
        return;
    }
    m_state->select(ref);
    fitSpan(ref);
    emit spanActivated(ref);
}

void TimelineView::wheelEvent(QWheelEvent* event)
{
    const QPointF angle = event->angleDelta();
    const QPointF pixels = event->pixelDelta().isNull() ? angle / 120.0 * 48.0 : QPointF(event->pixelDelta());
    const double notches = (std::abs(angle.y()) >= std::abs(angle.x()) ? angle.y() : angle.x()) / 120.0;
    if ((event->modifiers() & Qt::ControlModifier) != 0 && (event->modifiers() & Qt::ShiftModifier) != 0) {
        emit rowScaleAsked(notches);
    } else if ((event->modifiers() & Qt::ControlModifier) != 0) {
        const double x = std::clamp(event->position().x(), m_scene.axis.left, m_scene.axis.left + m_scene.axis.width);
        m_state->setVisible(zoomed(m_state->visible(), std::pow(zoomStep, -notches), m_scene.axis.toTime(x)), false);
    } else if ((event->modifiers() & Qt::ShiftModifier) != 0 || std::abs(pixels.x()) > std::abs(pixels.y())) {
        const double by = std::abs(pixels.x()) > std::abs(pixels.y()) ? pixels.x() : pixels.y();
        m_state->setVisible(pannedBy(m_state->visible(), -std::round(by), m_scene.axis.width, devicePixelRatioF()),
                            false);
    } else {
        setScrollTop(m_scene.scroll - pixels.y());
    }
    m_settle->start();
    hoverAt(event->position());
    event->accept();
}

void TimelineView::contextMenuEvent(QContextMenuEvent* event)
{
    QPoint at = event->pos();
    if (event->reason() == QContextMenuEvent::Keyboard) { // on the selected op, else on the row of the cursor
        const auto place = m_scene.rectOf(m_state->selected());
        if (place && place->intersects(m_scene.rowsRect())) {
            emit contextMenuAsked(mapToGlobal(place->center().toPoint()), m_state->selected());
            return;
        }
        if (const int row = cursorRow(); row >= 0) {
            emit rowMenuAsked(mapToGlobal(QPoint(60, static_cast<int>(m_scene.rowTop(row)) + 8)), row);
            return;
        }
        at = this->rect().center();
    }
    const int row = m_scene.rowUnder(at.y());
    const SpanRef ref = m_scene.spanAt(at);
    if (row >= 0 && at.x() < m_scene.axis.left) {
        setCursorRow(row);
        emit rowMenuAsked(event->globalPos(), row);
    } else if (row >= 0 && !ref.valid() && m_scene.place(row).kind != RowKind::Group &&
               at.y() < m_scene.rowTop(row) + m_scene.place(row).height &&
               idleCard(*m_scene.panels[static_cast<std::size_t>(m_scene.place(row).panel)],
                        m_scene.place(row).rankIndex, m_scene.axis.toTime(at.x()), m_causes)
                       .title.size() > 0) {
        emit gapMenuAsked(event->globalPos(), m_scene.place(row).panel, m_scene.rankOf(m_scene.place(row)).rank,
                          m_scene.axis.toTime(at.x()));
    } else if (row >= 0 && m_scene.place(row).kind == RowKind::Group) {
        setCursorRow(row);
        emit rowMenuAsked(event->globalPos(), row);
    } else {
        emit contextMenuAsked(event->globalPos(), ref);
    }
}

// --- keys -----------------------------------------------------------------------------------------------------------

bool TimelineView::event(QEvent* event)
{
    // Keys of the map win over application shortcuts while the view has focus.
    if (event->type() == QEvent::ShortcutOverride) {
        const auto* key = static_cast<QKeyEvent*>(event);
        const auto action = actionOf(m_keyMap, *key);
        const bool nudges = action == ViewAction::NudgeLeft || action == ViewAction::NudgeRight;
        if (action && (!nudges || m_editMode)) {
            event->accept();
            return true;
        }
    }
    return QWidget::event(event);
}

void TimelineView::keyPressEvent(QKeyEvent* event)
{
    const auto action = actionOf(m_keyMap, *event);
    if (action && perform(*action)) {
        event->accept();
        return;
    }
    if ((event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) && m_state->selected().valid()) {
        emit spanActivated(m_state->selected());
        return;
    }
    QWidget::keyPressEvent(event);
}

bool TimelineView::perform(ViewAction action)
{
    if (performOnAxis(*m_state, action)) {
        m_settle->start(); // remembered when the keys rest
        return true;
    }
    switch (action) {
    case ViewAction::RowsUp: setScrollTop(m_scene.scroll - m_scene.rows.metrics.pitch()); return true;
    case ViewAction::RowsDown: setScrollTop(m_scene.scroll + m_scene.rows.metrics.pitch()); return true;
    case ViewAction::FitSelection: fitSelection(); return true;
    case ViewAction::PreviousOp: walkOnRank(-1); return true;
    case ViewAction::NextOp: walkOnRank(1); return true;
    case ViewAction::PreviousStage: walkStage(-1); return true;
    case ViewAction::NextStage: walkStage(1); return true;
    case ViewAction::PreviousDependency: walkDependency(false); return true;
    case ViewAction::NextDependency: walkDependency(true); return true;
    case ViewAction::NudgeLeft:
    case ViewAction::NudgeRight: {
        const SpanRef ref = m_state->selected();
        if (!m_editMode || !m_scene.rectOf(ref)) return false;
        const TimelinePanel& panel = *m_scene.panels[static_cast<std::size_t>(ref.panel)];
        const int position = panel.positionOf(ref.span);
        if (position < 0) return false;
        emit opNudged(ref, panel.timeline->trackOf(ref.span).rank, position, action == ViewAction::NudgeLeft ? -1 : 1);
        return true;
    }
    case ViewAction::Cancel:
        if (m_drag.kind != Drag::None) {
            cancelDrag();
        } else if (m_state->selected().valid() || !m_state->areas().empty()) {
            m_state->clearSelection();
        } else if (m_cursor) {
            setCursorRow(-1);
        } else {
            return false;
        }
        return true;
    default: return false;
    }
}

} // namespace stagewright
