// Rows other than a single rank's ops: groups of ranks, and the sub-lanes under a rank (kernels, copies, waits). Part
// of slice_painter.
#pragma once

#include "widgets/timeline/raster_canvas.h"
#include "widgets/timeline/timeline_painter.h"

namespace stagewright {

// Summary of a group's ranks in every column of the axis.
struct GroupColumns {
    LaneColumns mean;               // its shares: the mean over the ranks
    std::vector<float> least, most; // share of the column that the idlest and the busiest rank fill
};
// device: columns in device pixels. O(ranks × columns + visible slices), a draft of crowded ranks O(ranks × columns).
void groupColumns(const TimelinePanel& panel, const RankGroup& group, const Axis& device, Detail detail,
                  GroupColumns& out);
// GroupLook::Range into rows [y0, y0 + height) of an image: mean as an area, minimum and maximum as a band around it.
void paintRange(QImage& image, const QRect& area, int y0, int height, const GroupColumns& columns, const Theme& theme);

// The sub-lanes of a row, names where they fit.
void paintSublanes(QPainter& painter, const TimelineScene& scene, int row, const Theme& theme, Detail detail,
                   double ratio);
// The bar of a row without ops: what its devices do, idle time empty.
void paintDeviceBar(QPainter& painter, const TimelineScene& scene, int row, const Theme& theme, Detail detail,
                    double ratio);
// As on its slice: kernels by their brief name.
QString nameOfWork(const Timeline& timeline, SpanId id);

} // namespace stagewright
