// The rows of a scene: bubbles hatched, slices, labels, gap durations, communication tracks, critical path. Part of
// timeline_painter; the caller has set the clip.
#pragma once

#include "widgets/timeline/raster_canvas.h"
#include "widgets/timeline/timeline_painter.h"

namespace stagewright {

// rows: those to paint. ratio: device pixels per logical pixel. canvas: the painter's own image if it may be written to
// directly, else null.
void paintSlices(QPainter& painter, const TimelineScene& scene, const std::vector<int>& rows, const Theme& theme,
                 Detail detail, double ratio, RasterCanvas* canvas);

// The label of a slice of this width: digit, letter and digit if there is room ("B3"), a letter for ops without a
// microbatch; empty if nothing fits.
QString sliceLabel(const Op& op, double width);
QString briefLabel(const Op& op); // the label if that does not fit; empty: none

} // namespace stagewright
