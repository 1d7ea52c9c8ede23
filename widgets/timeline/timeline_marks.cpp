// What changes with pointer and selection, painted over a finished frame.
#include "widgets/timeline/timeline_marks.h"

#include <algorithm>
#include <cmath>

#include <QFontMetricsF>
#include <QPainterPath>

#include "widgets/timeline/arrows.h"
#include "widgets/timeline/slice_painter.h"
#include "widgets/timeline/timeline_painter.h"

namespace stagewright {

namespace {

void paintAreas(QPainter& p, const TimelineScene& scene, const Theme& theme, bool pinned)
{
    for (const AreaSelection& area : scene.areas) {
        for (const QRectF& rect : scene.rectsOf(area, pinned)) {
            QColor tint = theme.accent;
            tint.setAlphaF(theme.dark ? 0.22f : 0.14f);
            p.fillRect(rect, tint);
            p.setPen(QPen(theme.accent, 1.5));
            p.setBrush(Qt::NoBrush);
            p.drawRect(rect);
            p.setPen(Qt::NoPen);
            p.setBrush(theme.accent);
            for (const double x : {rect.left(), rect.right()})
                p.drawRoundedRect(QRectF(x - 2, rect.center().y() - 9, 4, 18), 2, 2);
        }
    }
}

// Outlines every slice of the microbatch in view. Rows with thousands of slices in view are skipped: nothing would be
// visible.
void paintMicrobatch(QPainter& p, const TimelineScene& scene, const Theme& theme, bool pinned)
{
    if (!scene.microbatch.valid()) return;
    p.setBrush(Qt::NoBrush);
    for (const int row : scene.visibleRows()) {
        const RowPlace& place = scene.place(row);
        if ((row < scene.rows.pinned) != pinned || place.kind == RowKind::Group || place.height < 6) continue;
        const TimelinePanel& panel = *scene.panels[static_cast<std::size_t>(place.panel)];
        const LaneData& lane = panel.ranks[static_cast<std::size_t>(place.rankIndex)].compute;
        const std::size_t from = lane.firstEndingAfter(scene.axis.range.begin),
                          to = lane.firstBeginningAt(scene.axis.range.end);
        if (to < from || to - from > 5000) continue;
        for (std::size_t i = from; i < to; ++i) {
            const Slice& slice = lane.slices()[i];
            if (slice.microbatchOr(-1) != scene.microbatch.microbatch) continue;
            const SpanId id = lane.spanOf(i);
            const int step = (id == noSpan ? panel.stepNumberAt(slice.begin()) : panel.timeline->spans()[id].step) -
                             std::max(0, panel.step);
            if (scene.microbatch.step >= 0 && step != scene.microbatch.step) continue;
            const TimeSpan drawn = lane.drawn(i);
            const double x0 = scene.axis.toX(drawn.begin), x1 = scene.axis.toX(drawn.end);
            const bool half = slice.upper != 0 || slice.lower != 0;
            const double height = place.height / (half ? 2 : 1);
            const QRectF rect(x0, scene.rowTop(row) + (slice.lower != 0 ? height : 0), std::max(1.0, x1 - x0), height);
            p.setPen(QPen(theme.canvas, 3.5));
            p.drawRoundedRect(rect.adjusted(-0.5, -0.5, 0.5, 0.5), 3, 3);
            p.setPen(QPen(theme.text, 1.5));
            p.drawRoundedRect(rect.adjusted(-0.5, -0.5, 0.5, 0.5), 3, 3);
        }
    }
}

void paintDependencies(QPainter& p, const TimelineScene& scene, const Theme& theme)
{
    constexpr std::size_t most = 64;
    const auto selected = scene.rectOf(scene.selected);
    if (!selected) return;
    const Timeline& timeline = *scene.panels[static_cast<std::size_t>(scene.selected.panel)]->timeline;
    const auto place = [&](SpanId id) { return scene.rectOf({scene.selected.panel, id}); };
    std::size_t drawn = 0;
    for (const Edge& edge : timeline.edgesFrom(scene.selected.span)) {
        if (edge.to == edge.from) continue; // says only when it was launched
        const auto to = place(edge.to);
        if (to && drawn++ < most) paintDependency(p, *selected, *to, theme.better, theme.canvas);
    }
    drawn = 0;
    for (const Edge& edge : timeline.edgesInto(scene.selected.span)) {
        if (edge.to == edge.from) continue;
        const auto from = place(edge.from);
        if (from && drawn++ < most) paintDependency(p, *from, *selected, theme.critical, theme.canvas);
    }
}

void paintSelected(QPainter& p, const TimelineScene& scene, const Theme& theme)
{
    const auto rect = scene.rectOf(scene.selected);
    if (!rect) return;
    p.setBrush(Qt::NoBrush);
    p.setPen(QPen(theme.canvas, 5));
    if (scene.isCovered(*rect, scene.selected)) return;
    const QRectF outer = QRectF(rect->left(), rect->top(), std::max(2.0, rect->width()), rect->height());
    p.drawRoundedRect(outer.adjusted(-0.5, -0.5, 0.5, 0.5), 3, 3);
    p.setPen(QPen(theme.text, 2));
    p.drawRoundedRect(outer.adjusted(-1, -1, 1, 1), 3.5, 3.5);
}

void paintDrag(QPainter& p, const TimelineScene& scene, const Theme& theme)
{
    if (!scene.drag || !scene.drag->span.valid() || scene.drag->span.panel >= static_cast<int>(scene.panels.size()))
        return;
    const DragFeedback& drag = *scene.drag;
    const TimelinePanel& panel = *scene.panels[static_cast<std::size_t>(drag.span.panel)];
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
    const QStringList lines = drag.message.split(u'\n');
    double width = 0;
    for (const QString& line : lines) width = std::max(width, QFontMetricsF(p.font()).horizontalAdvance(line) + 18);
    const double left =
        std::clamp(ghost.left(), scene.axis.left, std::max(scene.axis.left, scene.size.width() - width - 4));
    const double boxHeight = 4 + 18.0 * static_cast<double>(lines.size());
    double y = top + height + 5;
    if (y + boxHeight > scene.size.height()) y = top - boxHeight - 5;
    p.setPen(Qt::NoPen);
    p.setBrush(colour);
    p.drawRoundedRect(QRectF(left, y, width, boxHeight), 4, 4);
    p.setPen(theme.dark ? theme.canvas : theme.onAccent);
    p.drawText(QRectF(left + 9, y, width - 9, boxHeight), Qt::AlignVCenter | Qt::AlignLeft, drag.message);
}

void paintHover(QPainter& p, const TimelineScene& scene, const Theme& theme)
{
    if (!scene.hoverTime) return;
    const double x = scene.axis.toX(*scene.hoverTime);
    if (x < scene.axis.left || x > scene.axis.left + scene.axis.width + rightMargin) return;
    QPen pen(theme.text, 1);
    pen.setDashPattern({3, 3});
    pen.setCapStyle(Qt::FlatCap);
    p.setPen(pen);
    p.drawLine(QPointF(x, rulerHeight), QPointF(x, scene.size.height()));
    const Units units = scene.panels.empty() ? Units{} : scene.panels.front()->units;
    const QString text = momentText(scene.shownTime(*scene.hoverTime), scene.axis.nanosPerPixel(), units);
    p.setFont(fontOf(FontRole::Strong));
    const double width = QFontMetricsF(p.font()).horizontalAdvance(text) + 16;
    const double left =
        std::clamp(x - width / 2, scene.axis.left - 20, std::max(scene.axis.left - 20, scene.size.width() - width - 2));
    p.setPen(Qt::NoPen);
    p.setBrush(theme.hoverLabel);
    p.drawRoundedRect(QRectF(left, 4, width, 19), 4, 4);
    p.setPen(theme.hoverLabelText);
    p.drawText(QRectF(left, 4, width, 19), Qt::AlignCenter, text);
}

} // namespace

void paintMarks(QPainter& painter, const TimelineScene& scene, const Theme& theme)
{
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.save();
    const double gutter = gutterFor(scene.size.width());
    painter.setClipRect(
        QRectF(gutter - 4, rulerHeight, std::max(0.0, scene.size.width() - gutter + 4), scene.rowsRect().height()));
    if (!scene.axis.degenerate()) {
        paintNotes(painter, scene, theme);
        for (const bool pinned : {false, true}) {
            if (pinned && scene.rows.pinned == 0) continue;
            painter.save();
            painter.setClipRect(pinned ? scene.pinnedRect() : scene.scrolledRect(), Qt::IntersectClip);
            paintAreas(painter, scene, theme, pinned);
            paintMicrobatch(painter, scene, theme, pinned);
            painter.restore();
        }
        paintSelected(painter, scene, theme);
        paintDependencies(painter, scene, theme);
        if (scene.flags) paintFlags(painter, scene, theme, *scene.flags); // readable over arrows
        paintDrag(painter, scene, theme);
        if (scene.zoomBox) {
            const double x0 = scene.axis.toX(scene.zoomBox->begin), x1 = scene.axis.toX(scene.zoomBox->end);
            QColor veil = theme.canvas;
            veil.setAlphaF(0.6f);
            painter.fillRect(QRectF(scene.axis.left, rulerHeight, x0 - scene.axis.left, scene.size.height()), veil);
            painter.fillRect(QRectF(x1, rulerHeight, scene.size.width() - x1, scene.size.height()), veil);
        }
    }
    painter.restore();
    if (!scene.axis.degenerate()) paintHover(painter, scene, theme);
    painter.restore();
}

} // namespace stagewright
