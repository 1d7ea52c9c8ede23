// Paints one plot where its layout has placed it: titles, ticks, series, rules, legend and names of points.
#pragma once

#include <vector>

#include "traces/plot/labels.h"
#include "traces/plot/layout.h"

namespace stagewright {

void paintPanel(const PlotLayout& layout, const std::vector<PlotLabel>& labels, PlotCanvas& canvas);

} // namespace stagewright
