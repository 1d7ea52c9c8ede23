// Arrows between slices, with a halo so that they stay visible over every fill.
#pragma once

#include <QColor>
#include <QPainter>
#include <QPainterPath>

namespace stagewright {

// A path with a head at its tip; direction: a unit vector along which it arrives.
void paintArrow(QPainter& p, const QPainterPath& path, QPointF tip, QPointF direction, const QColor& colour,
                const QColor& halo);
// From the end of one slice to the start of another; within a row over its top, so that no label is crossed out.
void paintDependency(QPainter& p, const QRectF& from, const QRectF& to, const QColor& colour, const QColor& halo);

} // namespace stagewright
