// The marks of the axis: the part that a zoom would show, and the time under the pointer.
#pragma once

#include "widgets/timeline/timeline_painter.h"

namespace stagewright {

void paintAxisMarks(QPainter& painter, const TimelineScene& scene, const Theme& theme); // over frame and overlays

} // namespace stagewright
