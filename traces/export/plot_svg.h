// A plot (schedules/base/plot.h) as SVG, in the colours of timeline_svg.h; the second line is dashed, too.
#pragma once

#include <string>

#include "schedules/base/plot.h"

namespace stagewright {

// An element of a web page, whose style is svgStyle(). Empty for an empty plot. Axes with ticks at steps of 1, 2 or 5, or
// the names of their places, and titles; a legend where there is more than one series; a name for each.
std::string plotSvg(const Plot& plot, const std::string& title, double width = 1120, double height = 300);

// A picture of its own, light, without style sheets' variables, which few programs but browsers know: the title above
// the plot, the caption below it.
std::string plotPicture(const Plot& plot, const std::string& title, const std::string& caption);

} // namespace stagewright
