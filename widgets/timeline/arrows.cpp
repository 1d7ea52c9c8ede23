#include "widgets/timeline/arrows.h"

#include <algorithm>
#include <cmath>

namespace stagewright {

void paintArrow(QPainter& p, const QPainterPath& path, QPointF tip, QPointF direction, const QColor& colour,
                const QColor& halo)
{
    constexpr double length = 8, half = 4.5;
    const QPointF side(-direction.y() * half, direction.x() * half);
    QPainterPath head(tip);
    head.lineTo(tip - direction * length + side);
    head.lineTo(tip - direction * length - side);
    head.closeSubpath();
    p.setBrush(Qt::NoBrush);
    p.setPen(QPen(halo, 4.5, Qt::SolidLine, Qt::RoundCap));
    p.drawPath(path);
    p.setPen(QPen(halo, 3, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
    p.setBrush(halo);
    p.drawPath(head);
    p.setBrush(Qt::NoBrush);
    p.setPen(QPen(colour, 2, Qt::SolidLine, Qt::FlatCap));
    p.drawPath(path);
    p.setPen(Qt::NoPen);
    p.setBrush(colour);
    p.drawPath(head);
}

void paintDependency(QPainter& p, const QRectF& from, const QRectF& to, const QColor& colour, const QColor& halo)
{
    constexpr double head = 7;
    if (std::abs(from.top() - to.top()) < 1) {
        const QPointF start(from.right() - std::min(5.0, from.width() / 2), from.top() + 3);
        const QPointF tip(to.left() + std::min(6.0, to.width() / 2), to.top() + 3);
        const double crest = from.top() - 7, bend = std::clamp((tip.x() - start.x()) / 2, 2.0, 12.0);
        QPainterPath path(start);
        path.cubicTo({start.x(), crest}, {start.x(), crest}, {start.x() + bend, crest});
        path.lineTo(tip.x() - bend, crest);
        path.cubicTo({tip.x(), crest}, {tip.x(), crest}, tip - QPointF(0, head));
        paintArrow(p, path, tip, {0, 1}, colour, halo);
        return;
    }
    const QPointF start(from.right() - 2, from.center().y() + (from.top() > to.top() ? -0.15 : 0.15) * from.height());
    const QPointF tip(to.left() + 1, to.center().y()), base = tip - QPointF(head, 0);
    const double reach = std::clamp(std::abs(tip.x() - start.x()) * 0.6, 16.0, 90.0);
    QPainterPath path(start);
    path.cubicTo(start + QPointF(reach, 0), base - QPointF(reach, 0), base);
    paintArrow(p, path, tip, {1, 0}, colour, halo);
}

} // namespace stagewright
