#include "widgets/timeline/timeline_marks.h"

#include <algorithm>

#include <QFontMetricsF>

#include "widgets/numbers.h"

namespace stagewright {
namespace {

void paintZoomBox(QPainter& p, const TimelineScene& scene, const Theme& theme)
{
    if (!scene.zoomBox) return;
    const double x0 = scene.axis.toX(scene.zoomBox->begin), x1 = scene.axis.toX(scene.zoomBox->end);
    QColor veil = theme.canvas;
    veil.setAlphaF(0.6f);
    p.save();
    p.setClipRect(scene.plotRect(), Qt::IntersectClip);
    p.fillRect(QRectF(scene.axis.left, rulerHeight, x0 - scene.axis.left, scene.size.height()), veil);
    p.fillRect(QRectF(x1, rulerHeight, scene.size.width() - x1, scene.size.height()), veil);
    p.restore();
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

void paintAxisMarks(QPainter& painter, const TimelineScene& scene, const Theme& theme)
{
    if (scene.axis.degenerate()) return;
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    paintZoomBox(painter, scene, theme);
    paintHover(painter, scene, theme);
    painter.restore();
}

} // namespace stagewright
