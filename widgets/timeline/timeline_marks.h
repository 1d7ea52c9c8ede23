// What is painted over a frame of the timeline.
#pragma once

#include "widgets/timeline/timeline_painter.h"

namespace stagewright {

// What changes with the pointer or the selection: hover line and label, same-microbatch outlines, selection, dependency
// arrows, areas, drag feedback.
void paintMarks(QPainter& painter, const TimelineScene& scene, const Theme& theme);

} // namespace stagewright
