// The shapes of a slice, its hatch and idle time: shared by the timeline, the legend, building blocks and every other
// small picture of an op. Logical pixels.
#pragma once

#include <QImage>
#include <QPainter>

#include "widgets/theme.h"

namespace stagewright {

inline constexpr double hatchPitch = 6; // px along x
inline constexpr double sliceCorner = 2.5;

void paintSliceShape(QPainter& painter, const QRectF& rect, const Fill& fill); // rounded, with a darker edge
void paintFillHatch(QPainter& painter, const QRectF& rect, const Fill& fill);  // lines over a fill that has a hatch
// The same for the visible part only: the hatch is anchored at the whole rectangle.
void paintFillHatch(QPainter& painter, const QRectF& rect, const Fill& fill, const QRectF& visible);
QImage hatchPattern(const Theme& theme, double ratio); // one period, opaque

// Hatched background of idle time; tiled on raster painters, lines elsewhere.
void paintHatch(QPainter& painter, const QRectF& rect, QPointF anchor, const Theme& theme);

} // namespace stagewright
