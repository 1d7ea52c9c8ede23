// The rows of a scene: bubbles hatched, slices, labels, gap durations, communication tracks, critical path. Part of
// timeline_painter; the caller has set the clip.
#pragma once

#include "widgets/timeline/raster_canvas.h"
#include "widgets/timeline/timeline_painter.h"

namespace stagewright {

// rows: those to paint. ratio: device pixels per logical pixel. canvas: the painter's own image where it may be written to
// directly, else null.
void paintSlices(QPainter& painter, const TimelineScene& scene, const std::vector<int>& rows, const Theme& theme, Detail detail,
                 double ratio, RasterCanvas* canvas);

// What a slice of this width says: digit, letter and digit where there is room ("B3"), a letter for ops without a
// microbatch; empty where nothing fits.
QString sliceLabel(const Op& op, double width);
QString briefLabel(const Op& op); // what it says where that does not fit; empty: nothing

} // namespace stagewright
