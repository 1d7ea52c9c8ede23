// Frames of the timeline that are moved instead of painted again.
#pragma once

#include "widgets/timeline/timeline_painter.h"

namespace stagewright {

// Paints a scene that differs from the canvas only in where its axis starts: moves pixels and paints the strips
// that came into view or have labels at an edge of it. Gives the same pixels as a fresh frame. Returns false and does
// nothing if the move is not a whole number of device pixels, if a pixel is not a whole number of ns, or if moving
// saves nothing.
bool panFrame(TimelineCanvas& canvas, const TimelineScene& scene, const Theme& theme, double ratio);

} // namespace stagewright
