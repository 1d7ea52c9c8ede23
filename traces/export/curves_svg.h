// Lines over a common axis as an SVG element of a web page, in the colours of timeline_svg.h; the second line is
// dashed, too.
#pragma once

#include <string>

#include "traces/report/table_curves.h"

namespace stagewright {

// Empty for no curves. Axes with ticks at steps of 1, 2 or 5 and titles; a legend where there is more than one line; a
// name for each line.
std::string curvesSvg(const TableCurves& curves, const std::string& title, double width = 1120);

} // namespace stagewright
