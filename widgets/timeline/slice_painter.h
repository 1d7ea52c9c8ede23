// The rows of a scene: bubbles hatched, slices, labels, gap durations, communication tracks, critical path. Part of
// timeline_painter; the caller has set the clip.
#pragma once

#include "widgets/timeline/timeline_painter.h"

namespace stagewright {

// ratio: device pixels per logical pixel.
void paintSlices(QPainter& painter, const TimelineScene& scene, const Theme& theme, Detail detail, double ratio);

// What a slice of this width says: digit, letter and digit where there is room ("B3"), a letter for ops without a
// microbatch; empty where nothing fits.
QString sliceLabel(const Op& op, double width);

// Hatched background of idle time; tiled where the painter is a raster one, lines elsewhere.
void paintHatch(QPainter& painter, const QRectF& rect, QPointF anchor, const Theme& theme);

} // namespace stagewright
