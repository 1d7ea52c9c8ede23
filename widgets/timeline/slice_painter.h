// The rows of a scene: bubbles hatched, slices, labels, gap durations, communication tracks, critical path. Part of
// timeline_painter; the caller has set the clip.
#pragma once

#include "widgets/timeline/raster_canvas.h"
#include "widgets/timeline/timeline_painter.h"

namespace stagewright {

inline constexpr double hatchPitch = 6; // px along x

// rows: those to paint. ratio: device pixels per logical pixel. canvas: the painter's own image where it may be written to
// directly, else null.
void paintSlices(QPainter& painter, const TimelineScene& scene, const std::vector<int>& rows, const Theme& theme, Detail detail,
                 double ratio, RasterCanvas* canvas);
void paintSliceShape(QPainter& painter, const QRectF& rect, const Fill& fill); // rounded, with a darker edge
void paintFillHatch(QPainter& painter, const QRectF& rect, const Fill& fill); // lines over a fill that has a hatch
QImage hatchPattern(const Theme& theme, double ratio); // one period, opaque

// What a slice of this width says: digit, letter and digit where there is room ("B3"), a letter for ops without a
// microbatch; empty where nothing fits.
QString sliceLabel(const Op& op, double width);
QString briefLabel(const Op& op); // what it says where that does not fit; empty: nothing

// Hatched background of idle time; tiled where the painter is a raster one, lines elsewhere.
void paintHatch(QPainter& painter, const QRectF& rect, QPointF anchor, const Theme& theme);

} // namespace stagewright
