#include "widgets/edit/edit_overlay.h"

#include <algorithm>

#include <QFontMetricsF>
#include <QPainterPath>

#include "widgets/timeline/list_place.h"
#include "widgets/timeline/slice_painter.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {
namespace {

constexpr double minOutline = 3; // px; narrower slices of a ghost are skipped
constexpr std::size_t mostOutlines = 20000;

bool hasAlike(const LaneData& lane, const Slice& slice)
{
    for (std::size_t i = lane.firstBeginningAt(slice.begin());
         i < lane.size() && lane.slices()[i].begin() == slice.begin(); ++i) {
        const Slice& other = lane.slices()[i];
        if (other.end() == slice.end() && other.kind == slice.kind && other.microbatch == slice.microbatch) return true;
    }
    return false;
}

void paintGhost(QPainter& painter, const TimelineScene& scene, const Theme& theme, const TimelinePanel& ghost)
{
    const TimelinePanel& shown = *scene.panels.front();
    const Axis& axis = scene.axis;
    QColor colour = theme.text;
    colour.setAlphaF(theme.dark ? 0.55F : 0.45F);
    QPen pen(colour, 1);
    pen.setDashPattern({3, 2});
    painter.setPen(pen);
    painter.setBrush(Qt::NoBrush);
    std::size_t left = mostOutlines;
    for (std::size_t r = 0; r < ghost.ranks.size() && r < shown.ranks.size(); ++r) {
        const auto row = scene.rowRect(0, static_cast<int>(r));
        if (!row || row->bottom() < rulerHeight || row->top() > scene.size.height()) continue;
        const LaneData& lane = ghost.ranks[r].compute;
        const std::size_t to = lane.firstBeginningAt(axis.range.end);
        for (std::size_t i = lane.firstEndingAfter(axis.range.begin); i < to && left > 0; ++i) {
            const Slice& slice = lane.slices()[i];
            const TimeSpan drawn = lane.drawn(i);
            const double x0 = axis.toX(drawn.begin), x1 = axis.toX(drawn.end);
            if (x1 - x0 < minOutline || hasAlike(shown.ranks[r].compute, slice)) continue;
            painter.drawRect(QRectF(x0 + 0.5, row->top() - 2.5, x1 - x0 - 1, row->height() + 5));
            --left;
        }
    }
}

void paintDrag(QPainter& p, const TimelineScene& scene, const Theme& theme, const DragFeedback& drag)
{
    if (!drag.span.valid() || drag.span.panel >= static_cast<int>(scene.panels.size())) return;
    const TimelinePanel& panel = scene.panel(drag.span.panel);
    const int row = scene.rowOf(drag.span.panel, drag.toRank);
    if (row >= 0 && scene.place(row).kind == RowKind::Group) return;
    if (row < 0 || drag.span.span >= panel.timeline->spans().size()) return;
    const QColor colour = drag.valid ? theme.better : theme.critical;
    const double top = scene.rowTop(row), height = scene.place(row).height;
    if (drag.insertAt) {
        const double x = scene.axis.toX(*drag.insertAt);
        p.fillRect(QRectF(x - 1.5, top - 5, 3, height + 10), colour);
        QPainterPath cap;
        cap.moveTo(x - 5, top - 9);
        cap.lineTo(x + 5, top - 9);
        cap.lineTo(x, top - 3);
        cap.closeSubpath();
        p.fillPath(cap, colour);
    }
    const Op& op = panel.timeline->spans()[drag.span.span].op;
    const double x0 = scene.axis.toX(drag.begin), x1 = scene.axis.toX(drag.end);
    const QRectF ghost(x0, top, std::max(2.0, x1 - x0), height);
    QColor fill = theme.of(op.kind).fill;
    fill.setAlphaF(0.8f);
    p.setBrush(fill);
    QPen pen(colour, 2);
    if (!drag.valid) pen.setDashPattern({3, 2});
    p.setPen(pen);
    p.drawRoundedRect(ghost.adjusted(1, 1, -1, -1), 3, 3);
    p.setFont(fontOf(FontRole::Label));
    p.setPen(theme.of(op.kind).label);
    const QString label = sliceLabel(op, ghost.width());
    if (QFontMetricsF(p.font()).horizontalAdvance(label) + 3 <= ghost.width())
        p.drawText(ghost, Qt::AlignCenter, label);
    if (drag.message.isEmpty()) return;
    p.setFont(fontOf(FontRole::Strong));
    // in as many lines as the view is narrow
    const QFontMetricsF metrics(p.font());
    const QRectF words = metrics.boundingRect(QRectF(0, 0, std::max(120.0, scene.size.width() - 26), 1e4),
                                              Qt::TextWordWrap, drag.message);
    const double width = std::ceil(words.width()) + 20;
    const double left =
        std::clamp(ghost.left(), scene.axis.left, std::max(scene.axis.left, scene.size.width() - width - 4));
    const double boxHeight = 6 + std::ceil(words.height());
    double y = top + height + 5;
    if (y + boxHeight > scene.size.height()) y = top - boxHeight - 5;
    p.setPen(Qt::NoPen);
    p.setBrush(colour);
    p.drawRoundedRect(QRectF(left, y, width, boxHeight), 4, 4);
    p.setPen(theme.dark ? theme.canvas : theme.onAccent);
    p.drawText(QRectF(left + 9, y, width - 18, boxHeight), Qt::AlignVCenter | Qt::AlignLeft | Qt::TextWordWrap,
               drag.message);
}

} // namespace

void EditOverlay::setMoves(bool on)
{
    if (on == m_moves) return;
    if (view() != nullptr) view()->input().cancelDrag();
    m_moves = on;
    setDrag(std::nullopt);
}

void EditOverlay::setDrag(const std::optional<DragFeedback>& drag)
{
    m_drag = drag;
    if (view() != nullptr) view()->setFaded(drag ? drag->span : SpanRef{});
    update();
}

void EditOverlay::clear()
{
    m_faults.clear();
    m_chosen.clear();
    m_gap.reset();
    m_ghost.reset();
    update();
}

void EditOverlay::paint(QPainter& painter, const TimelineScene& scene, const Theme& theme) const
{
    if (scene.panels.empty()) return;
    painter.setBrush(Qt::NoBrush);
    if (m_drag) paintDrag(painter, scene, theme, *m_drag);
    painter.setClipRect(scene.plotRect().adjusted(4, 0, 0, 0), Qt::IntersectClip);
    if (m_ghost) {
        painter.setRenderHint(QPainter::Antialiasing, false);
        paintGhost(painter, scene, theme, *m_ghost);
        painter.setRenderHint(QPainter::Antialiasing);
    }
    painter.setBrush(Qt::NoBrush);
    if (const auto row = m_gap ? scene.rowRect(0, m_gap->rank) : std::nullopt) {
        const double x0 = scene.axis.toX(m_gap->begin), x1 = scene.axis.toX(m_gap->end);
        painter.setPen(QPen(theme.accent, 2));
        painter.drawRoundedRect(QRectF(x0, row->top(), x1 - x0, row->height()).adjusted(1, 1, -1, -1), 3, 3);
    }
    if (scene.preview) return; // its spans have other numbers
    for (const SpanId span : m_chosen) {
        const auto rect = scene.rectOf({0, span});
        if (!rect || rect->right() < scene.axis.left || rect->left() > scene.size.width()) continue;
        painter.setPen(QPen(theme.canvas, 4));
        painter.drawRoundedRect(rect->adjusted(-1, -1, 1, 1), 3, 3);
        painter.setPen(QPen(theme.text, 2));
        painter.drawRoundedRect(rect->adjusted(-1, -1, 1, 1), 3, 3);
    }
    for (std::size_t i = 0; i < m_faults.size(); ++i) {
        const auto rect = scene.rectOf({0, m_faults[i]});
        if (!rect) continue;
        // The faulty op is solid, its counterpart dashed; a halo keeps both visible on every fill.
        painter.setPen(QPen(theme.canvas, 5));
        painter.drawRoundedRect(rect->adjusted(-2, -2, 2, 2), 4, 4);
        painter.setPen(QPen(theme.critical, 2.5, i == 0 ? Qt::SolidLine : Qt::DashLine));
        painter.drawRoundedRect(rect->adjusted(-2, -2, 2, 2), 4, 4);
    }
}

std::optional<OverlayHit> EditOverlay::hit(const OverlayPress& press)
{
    if (!m_moves || (!press.hovers() && press.button != Qt::LeftButton)) return std::nullopt;
    const SpanRef ref = scene().spanAt(press.at);
    if (!ref.valid()) return std::nullopt;
    OverlayHit hit;
    hit.cursor = Qt::OpenHandCursor;
    if (press.hovers()) return hit;
    if ((press.modifiers & Qt::ControlModifier) != 0) hit.click = [this, ref] { emit opToggled(ref); };
    const int position = scene().panel(ref.panel).positionOf(ref.span);
    if (position < 0 || (press.modifiers & (Qt::ShiftModifier | Qt::ControlModifier)) != 0) return hit;
    hit.held = Qt::ClosedHandCursor;
    hit.tellsTime = false;
    hit.press = [this, ref, position] {
        m_held = {ref, scene().rankNumber(ref), position, -1, -1};
        state().select(ref);
    };
    hit.drag = [this](QPointF at) { drag(at); };
    hit.drop = [this](bool dragged) { drop(dragged); };
    hit.cancel = [this] { drop(false); };
    return hit;
}

// Before the first compute span with its middle to the right of the pointer; `dragged` is not counted, nor are spans of
// other steps than its.
int EditOverlay::positionAt(const TimelinePanel& panel, int rank, QPointF at, SpanId dragged) const
{
    const LaneData& lane = panel.ranks[static_cast<std::size_t>(rank)].compute;
    if (scene().axis.degenerate()) return static_cast<int>(lane.size()); // nothing is drawn yet
    const auto spans = panel.timeline->spans();
    const Nanos pointer = scene().axis.toTime(at.x());
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

std::optional<EditOverlay::DropPlace> EditOverlay::dropPlace(QPointF at) const
{
    if (!QRectF(view()->rect()).contains(at) || at.x() < scene().axis.left || scene().panels.empty())
        return std::nullopt;
    const int row = scene().rowUnder(at.y());
    if (row < 0 || scene().place(row).kind == RowKind::Group) return std::nullopt;
    const RowPlace& place = scene().place(row);
    return DropPlace{place.panel, scene().rankOf(place).rank,
                     positionAt(scene().panel(place.panel), place.rankIndex, at, noSpan)};
}

void EditOverlay::drag(QPointF at)
{
    const int row = scene().nearestRow(at.y());
    const bool isOwn = row >= 0 && scene().place(row).panel == m_held.span.panel;
    const int rank =
        isOwn && scene().place(row).kind != RowKind::Group ? scene().rankOf(scene().place(row)).rank : m_held.rank;
    const int to = positionAt(scene().panel(m_held.span.panel), rank, at, m_held.span.span);
    if (rank == m_held.toRank && to == m_held.to) return update();
    m_held.toRank = rank;
    m_held.to = to;
    emit opDragged(m_held.span, m_held.rank, m_held.position, rank, to);
}

void EditOverlay::drop(bool dragged)
{
    const Held held = std::exchange(m_held, {});
    if (dragged && held.toRank >= 0 && (held.toRank != held.rank || held.to != held.position))
        emit opDropped(held.span, held.rank, held.position, held.toRank, held.to);
    else
        emit opDragCancelled();
    setDrag(std::nullopt);
}

bool EditOverlay::key(ViewAction action, bool asked)
{
    if (!m_moves || (action != ViewAction::NudgeLeft && action != ViewAction::NudgeRight)) return false;
    if (asked) return true;
    const SpanRef ref = state().selected();
    if (!scene().rectOf(ref)) return false;
    const int position = scene().panel(ref.panel).positionOf(ref.span);
    if (position < 0) return false;
    emit opNudged(ref, scene().rankNumber(ref), position, action == ViewAction::NudgeLeft ? -1 : 1);
    return true;
}

} // namespace stagewright
