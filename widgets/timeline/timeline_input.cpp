#include "widgets/timeline/timeline_input.h"

#include <algorithm>
#include <cmath>

#include <QContextMenuEvent>
#include <QMouseEvent>
#include <QWheelEvent>

#include "traces/analysis/kernels.h"
#include "widgets/hover_card.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {
namespace {

constexpr double zoomStep = 1.25;

// What the pointer on an op highlights: its microbatch, or of a kernel that of the op that launched it.
MicrobatchRef microbatchOf(const TimelinePanel& panel, SpanId id)
{
    const Span& span = panel.timeline->spans()[id];
    MicrobatchRef found{span.op.microbatch, span.step - std::max(0, panel.step)};
    if (span.label != 0 && span.op.microbatch < 0)
        if (const SpanId by = launchOf(*panel.timeline, id).by; by != noSpan)
            found.microbatch = panel.timeline->spans()[by].op.microbatch;
    return found.valid() ? found : MicrobatchRef{};
}

bool onGutter(const TimelineView& view, QPointF at) { return at.x() < gutterFor(view.width()) - 12; }

} // namespace

TimelineInput::TimelineInput(TimelineView* view) : QObject(view), m_view(view)
{
    view->installEventFilter(this);
    // What the card and the outlines describe is elsewhere now; a drag or the wheel says again what is there.
    const auto moved = [this] {
        if (m_telling || dragging()) return;
        hideCard();
        m_view->viewState()->setHovered({});
    };
    connect(view->viewState(), &ViewState::visibleChanged, this, moved);
    connect(this, &TimelineInput::rowsScrolled, this, moved);
}

TimelineInput::~TimelineInput() { delete m_card.data(); }

bool TimelineInput::eventFilter(QObject*, QEvent* event)
{
    switch (event->type()) {
    case QEvent::MouseButtonPress: press(*static_cast<QMouseEvent*>(event)); break;
    case QEvent::MouseMove: move(static_cast<QMouseEvent*>(event)->position()); break;
    case QEvent::MouseButtonRelease: release(*static_cast<QMouseEvent*>(event)); break;
    case QEvent::MouseButtonDblClick: doubleClick(*static_cast<QMouseEvent*>(event)); break;
    case QEvent::Wheel: wheel(*static_cast<QWheelEvent*>(event)); break;
    case QEvent::ContextMenu: menu(*static_cast<QContextMenuEvent*>(event)); break;
    case QEvent::Leave: leave(); return false;
    case QEvent::Resize: hideCard(); return false;
    case QEvent::ShortcutOverride: // keys of the map win over application shortcuts while the view has focus
        if (!key(*static_cast<QKeyEvent*>(event), true)) return false;
        break;
    case QEvent::KeyPress:
        if (!key(*static_cast<QKeyEvent*>(event), false)) return false;
        break;
    default: return false;
    }
    event->accept();
    return true;
}

// --- the pointer ----------------------------------------------------------------------------------------------------

void TimelineInput::hideCard()
{
    if (m_card) m_card->hide();
}

void TimelineInput::pictureMoved()
{
    if (m_view->viewState()->hovered().valid()) m_view->viewState()->setHovered({});
    hideCard();
}

void TimelineInput::leave()
{
    m_view->viewState()->setHoverTime(std::nullopt);
    m_view->viewState()->setHovered({});
    hideCard();
}

void TimelineInput::hover(QPointF at)
{
    const TimelineScene& scene = m_view->scene();
    const Axis& axis = scene.axis;
    const bool inPlot =
        at.x() >= axis.left && at.x() < axis.left + axis.width + rightMargin && m_view->rect().contains(at.toPoint());
    if (!inPlot || axis.degenerate() || scene.panels.empty()) return leave();
    ViewState* state = m_view->viewState();
    state->setHoverTime(axis.toTime(at.x()));
    const SpanRef ref = scene.spanAt(at);
    state->setHovered(ref, ref.valid() ? microbatchOf(scene.panel(ref.panel), ref.span) : MicrobatchRef{});
    if (!m_card) m_card = new HoverCard(m_view);
    if (m_drag.kind == Drag::None || m_drag.kind == Drag::Pending)
        m_card->showAt(m_view->mapToGlobal(at.toPoint()), m_view->cardAt(at), m_view->theme());
    else
        hideCard();
}

std::vector<OverlayHit> TimelineInput::hits(const OverlayPress& press) const
{
    std::vector<OverlayHit> found;
    const auto& overlays = m_view->overlays();
    for (auto overlay = overlays.rbegin(); overlay != overlays.rend(); ++overlay)
        if (auto hit = (*overlay)->hit(press)) found.push_back(std::move(*hit));
    std::stable_partition(found.begin(), found.end(), [](const OverlayHit& hit) { return hit.atOnce; });
    return found;
}

void TimelineInput::showCursor(QPointF at)
{
    const auto found = hits({at, Qt::NoButton, {}});
    if (found.empty() || found.front().cursor == Qt::ArrowCursor)
        m_view->unsetCursor();
    else
        m_view->setCursor(found.front().cursor);
}

void TimelineInput::press(const QMouseEvent& event)
{
    m_view->setFocus(Qt::MouseFocusReason);
    emit pressed(event.position());
    if (dragging() || m_view->panels().empty()) return;
    if (event.button() != Qt::LeftButton && event.button() != Qt::MiddleButton) return;
    m_drag = {};
    m_drag.kind = Drag::Pending;
    m_drag.button = event.button();
    m_drag.modifiers = event.modifiers();
    m_drag.from = event.position();
    m_drag.rangeAtStart = m_view->viewState()->visible();
    m_drag.scrollAtStart = m_view->scene().scroll;
    for (OverlayHit& hit : hits({event.position(), event.button(), event.modifiers()})) {
        if (hit.click && !m_drag.clicked) m_drag.clicked = hit;
        if (hit.drag && !m_drag.held) m_drag.held = std::move(hit);
    }
    if (m_drag.held && m_drag.held->press) m_drag.held->press();
    if (m_drag.held && m_drag.held->atOnce) m_drag.kind = Drag::Overlay;
}

void TimelineInput::beginDrag()
{
    const bool shift = (m_drag.modifiers & Qt::ShiftModifier) != 0;
    m_drag.kind = m_drag.button == Qt::MiddleButton ? Drag::Zoom
                  : shift                           ? Drag::Pan
                  : m_drag.held                     ? Drag::Overlay
                                                    : Drag::None;
    const Qt::CursorShape held = m_drag.kind == Drag::Pan       ? Qt::ClosedHandCursor
                                 : m_drag.kind == Drag::Overlay ? m_drag.held->held
                                                                : Qt::ArrowCursor;
    if (held != Qt::ArrowCursor) m_view->setCursor(held);
    hideCard();
}

void TimelineInput::move(QPointF at)
{
    if (m_drag.kind == Drag::Pending && (at - m_drag.from).manhattanLength() >= dragThreshold) beginDrag();
    const Axis& axis = m_view->scene().axis;
    if (m_drag.kind == Drag::Pan) { // whole device pixels, so that nothing shimmers
        m_view->viewState()->setVisible(
            pannedBy(m_drag.rangeAtStart, m_drag.from.x() - at.x(), axis.width, m_view->devicePixelRatioF()), false);
        m_view->setScrollTop(m_drag.scrollAtStart - (at.y() - m_drag.from.y()));
    } else if (m_drag.kind == Drag::Zoom) {
        const auto time = [&](QPointF p) { return axis.toTime(std::clamp(p.x(), axis.left, axis.left + axis.width)); };
        m_view->setZoomBox(TimeRange{std::min(time(m_drag.from), time(at)), std::max(time(m_drag.from), time(at))});
    } else if (m_drag.kind == Drag::Overlay) {
        m_drag.held->drag(at);
    }
    const bool moves = m_drag.kind == Drag::Pan || (m_drag.kind == Drag::Overlay && !m_drag.held->tellsTime);
    if (!moves) hover(at);
    if (m_drag.kind == Drag::None) showCursor(at);
}

void TimelineInput::release(const QMouseEvent& event)
{
    if (!dragging() || event.button() != m_drag.button) return;
    const DragState drag = std::exchange(m_drag, {});
    if (drag.kind == Drag::Pending && drag.clicked) drag.clicked->click();
    if (drag.kind == Drag::Zoom) {
        const auto box = m_view->scene().zoomBox;
        if (box && !box->empty()) m_view->viewState()->setVisible(*box);
        m_view->setZoomBox(std::nullopt);
    } else if (drag.kind == Drag::Pan) {
        m_view->viewState()->rememberVisible();
    }
    if (drag.held && drag.held->drop) drag.held->drop(drag.kind == Drag::Overlay);
    m_view->unsetCursor();
    m_view->update();
    showCursor(event.position());
}

void TimelineInput::cancelDrag()
{
    if (!dragging()) return;
    const DragState drag = std::exchange(m_drag, {});
    m_view->setZoomBox(std::nullopt);
    if (drag.kind == Drag::Pan) {
        m_view->viewState()->setVisible(drag.rangeAtStart, false);
        m_view->setScrollTop(drag.scrollAtStart);
    }
    if (drag.held && drag.held->cancel) drag.held->cancel();
    m_view->unsetCursor();
    m_view->update();
}

void TimelineInput::doubleClick(const QMouseEvent& event)
{
    if (event.button() != Qt::LeftButton) return;
    const TimelineScene& scene = m_view->scene();
    ViewState* state = m_view->viewState();
    if (const SpanRef ref = scene.spanAt(event.position()); ref.valid()) {
        state->select(ref);
        m_view->selection().fitTo(ref);
        emit spanActivated(ref);
        return;
    }
    const int row = scene.rowUnder(event.position().y());
    if (row < 0) return;
    const bool isGroup = scene.place(row).kind == RowKind::Group;
    if (isGroup == onGutter(*m_view, event.position())) return;
    if (isGroup) return toggleGroup(*state, scene, row);
    RowSettings rows = state->rows(); // folds the rank, or opens it
    const int rank = scene.rankOf(scene.place(row)).rank;
    if (rows.collapsed.erase(rank) == 0) rows.collapsed.insert(rank);
    state->setRows(rows);
}

void TimelineInput::wheel(const QWheelEvent& event)
{
    const Axis axis = m_view->scene().axis;
    ViewState* state = m_view->viewState();
    const QPointF angle = event.angleDelta();
    const QPointF pixels = event.pixelDelta().isNull() ? angle / 120.0 * 48.0 : QPointF(event.pixelDelta());
    const double notches = (std::abs(angle.y()) >= std::abs(angle.x()) ? angle.y() : angle.x()) / 120.0;
    const bool control = (event.modifiers() & Qt::ControlModifier) != 0,
               shift = (event.modifiers() & Qt::ShiftModifier) != 0,
               sideways = std::abs(pixels.x()) > std::abs(pixels.y());
    const bool nested = std::exchange(m_telling, true);
    if (control && shift) {
        emit rowScaleAsked(notches);
    } else if (control) {
        const double x = std::clamp(event.position().x(), axis.left, axis.left + axis.width);
        state->setVisible(zoomed(state->visible(), std::pow(zoomStep, -notches), axis.toTime(x)), false);
    } else if (shift || sideways) {
        state->setVisible(pannedBy(state->visible(), -std::round(sideways ? pixels.x() : pixels.y()), axis.width,
                                   m_view->devicePixelRatioF()),
                          false);
    } else {
        m_view->setScrollTop(m_view->scene().scroll - pixels.y());
    }
    m_telling = nested;
    hover(event.position());
}

void TimelineInput::menu(const QContextMenuEvent& event)
{
    const TimelineScene& scene = m_view->scene();
    QPoint at = event.pos();
    if (event.reason() == QContextMenuEvent::Keyboard) { // on the selected op, else on the row of the cursor
        const SpanRef selected = m_view->viewState()->selected();
        const auto place = scene.rectOf(selected);
        if (place && place->intersects(scene.rowsRect()))
            return emit contextMenuAsked(m_view->mapToGlobal(place->center().toPoint()), selected);
        if (const int row = m_view->rowCursor().row(); row >= 0)
            return emit rowMenuAsked(m_view->mapToGlobal(QPoint(60, static_cast<int>(scene.rowTop(row)) + 8)), row);
        at = m_view->rect().center();
    }
    const int row = scene.rowUnder(at.y());
    const SpanRef ref = scene.spanAt(at);
    const bool isGroup = row >= 0 && scene.place(row).kind == RowKind::Group;
    const bool idle = row >= 0 && at.x() >= scene.axis.left && !ref.valid() && !isGroup &&
                      at.y() < scene.rowTop(row) + scene.place(row).height &&
                      !m_view->idleCardOf(scene.place(row), scene.axis.toTime(at.x())).title.isEmpty();
    if (idle) {
        emit gapMenuAsked(event.globalPos(), scene.place(row).panel, scene.rankOf(scene.place(row)).rank,
                          scene.axis.toTime(at.x()));
    } else if (row >= 0 && (isGroup || at.x() < scene.axis.left)) {
        m_view->rowCursor().set(row);
        emit rowMenuAsked(event.globalPos(), row);
    } else {
        emit contextMenuAsked(event.globalPos(), ref);
    }
}

// --- keys -----------------------------------------------------------------------------------------------------------

bool TimelineInput::obey(ViewAction action)
{
    if (performOnAxis(*m_view->viewState(), action)) return true;
    if (action == ViewAction::RowsUp || action == ViewAction::RowsDown) {
        const double by = m_view->scene().rows.metrics.pitch();
        m_view->setScrollTop(m_view->scene().scroll + (action == ViewAction::RowsUp ? -by : by));
        return true;
    }
    if (action == ViewAction::Cancel && dragging()) {
        cancelDrag();
        return true;
    }
    const auto& overlays = m_view->overlays();
    return std::any_of(overlays.rbegin(), overlays.rend(), [&](Overlay* one) { return one->key(action, false); });
}

// Whether it is a key of the view; unless it is only asked, it has been obeyed.
bool TimelineInput::key(const QKeyEvent& event, bool asked)
{
    const auto action = actionOf(m_keyMap, event);
    if (asked) {
        if (action != ViewAction::NudgeLeft && action != ViewAction::NudgeRight) return action.has_value();
        const auto& overlays = m_view->overlays(); // otherwise the key is another's
        return std::any_of(overlays.begin(), overlays.end(), [&](Overlay* one) { return one->key(*action, true); });
    }
    if (action && obey(*action)) return true;
    const SpanRef selected = m_view->viewState()->selected();
    if ((event.key() != Qt::Key_Return && event.key() != Qt::Key_Enter) || !selected.valid()) return false;
    emit spanActivated(selected);
    return true;
}

} // namespace stagewright
