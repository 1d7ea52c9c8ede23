#include "widgets/timeline/slice_shapes.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <QPaintEngine>

#include "widgets/timeline/geometry.h"

namespace stagewright {

void paintSliceShape(QPainter& painter, const QRectF& rect, const Fill& fill)
{
    const double radius = std::min({sliceCorner, rect.width() / 2, rect.height() / 4});
    painter.setPen(QPen(fill.edge, 1));
    painter.setBrush(fill.fill);
    painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), radius - 0.5, radius - 0.5);
    paintFillHatch(painter, rect, fill);
}

void paintFillHatch(QPainter& painter, const QRectF& rect, const Fill& fill)
{
    paintFillHatch(painter, rect, fill, rect);
}

void paintFillHatch(QPainter& painter, const QRectF& rect, const Fill& fill, const QRectF& visible)
{
    if (fill.hatch == Fill::Hatch::None) return;
    const QRectF inner = rect.adjusted(1, 1, -1, -1), part = inner.intersected(visible);
    if (inner.width() < 2 || inner.height() < 2 || part.isEmpty()) return;
    std::vector<QLineF> lines;
    switch (fill.hatch) {
    case Fill::Hatch::None: break;
    case Fill::Hatch::Falling: { // rising ones, mirrored at the left edge
        const double mirror = 2 * inner.left();
        lines = hatchLines(QRectF(mirror - part.right(), part.top(), part.width(), part.height()), inner.topLeft(), 5);
        for (QLineF& line : lines) line.setLine(mirror - line.x1(), line.y1(), mirror - line.x2(), line.y2());
        break;
    }
    case Fill::Hatch::Level:
        for (double y = inner.top() + 2.5; y < inner.bottom(); y += 5)
            lines.emplace_back(part.left(), y, part.right(), y);
        break;
    case Fill::Hatch::Upright:
        for (double x = inner.left() + 1.5 + 3 * std::max(0.0, std::ceil((part.left() - inner.left() - 1.5) / 3));
             x < part.right(); x += 3)
            lines.emplace_back(x, inner.top(), x, inner.bottom());
        break;
    }
    QColor ink = fill.label;
    ink.setAlphaF(0.45F);
    QPen pen(ink, 0.9);
    pen.setCapStyle(Qt::FlatCap);
    painter.setPen(pen);
    painter.drawLines(lines.data(), static_cast<int>(lines.size()));
}

QImage hatchPattern(const Theme& theme, double ratio)
{
    const int period = std::max(1, static_cast<int>(std::lround(hatchPitch * ratio)));
    QImage tile(period, period, QImage::Format_RGB32);
    tile.fill(theme.bubbleFill);
    QPainter p(&tile);
    p.setRenderHint(QPainter::Antialiasing);
    p.setPen(QPen(theme.bubbleHatch, std::max(1.0, ratio)));
    for (int shift = -1; shift <= 2; ++shift) {
        p.drawLine(QPointF(shift * period - period, 2 * period), QPointF(shift * period + period, 0));
    }
    return tile;
}

void paintHatch(QPainter& painter, const QRectF& rect, QPointF anchor, const Theme& theme)
{
    if (rect.isEmpty()) return;
    painter.fillRect(rect, theme.bubbleFill);
    const double ratio = painter.device()->devicePixelRatioF() * painter.worldTransform().m11();
    const int period = static_cast<int>(std::lround(hatchPitch * ratio));
    const bool isRaster = painter.paintEngine() != nullptr && painter.paintEngine()->type() == QPaintEngine::Raster;
    if (!isRaster || period < 2) {
        painter.setPen(QPen(theme.bubbleHatch, 1));
        const std::vector<QLineF> lines = hatchLines(rect, anchor, hatchPitch);
        painter.drawLines(lines.data(), static_cast<int>(lines.size()));
        return;
    }
    const QImage tile = hatchPattern(theme, ratio); // in device pixels, so that it repeats exactly
    painter.save();
    const QTransform world = painter.deviceTransform();
    painter.setClipRect(rect, Qt::IntersectClip);
    painter.resetTransform();
    const double own = painter.device()->devicePixelRatioF();
    painter.scale(1 / own, 1 / own);
    QBrush brush(tile);
    const QPointF origin = world.map(anchor);
    painter.setBrushOrigin(QPointF(std::round(origin.x()), std::round(origin.y())));
    painter.fillRect(world.mapRect(rect), brush);
    painter.restore();
}

} // namespace stagewright
