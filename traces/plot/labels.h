// Names of points that give way to each other: beside their points, farther away at the end of a line, or left out.
#pragma once

#include <string>
#include <vector>

#include "traces/plot/canvas.h"
#include "traces/plot/layout.h"

namespace stagewright {

struct PlotLabel {
    PlotBox box;
    std::string text;
    PlotPlace of;        // its point
    PlotInk ink;         // of the text
    bool leader = false; // far enough for a line from the point
    PlotPlace leaderEnd() const;
};

// Names overlap no other name, no point, no rule's name; the chosen point's is placed first. O(points²).
std::vector<PlotLabel> placedLabels(const PlotLayout& layout, const PlotCanvas& canvas, const PlotItem* chosen);

} // namespace stagewright
