// Pictures of a step as SVG elements for a web page, without Qt: rows of slices with hatched idle time, and step charts
// of activation memory. Colours are CSS classes, so that a page shows them light and dark; svgStyle() has the rules.
#pragma once

#include <string>
#include <string_view>

#include "traces/run/run.h"

namespace stagewright {

struct SvgOptions {
    double width = 1120; // user units
    int mostRanks = 64;  // further ranks are omitted and counted in a line below
    Nanos duration = 0;  // the axis shows [0, duration) from the step's start; 0: the step's own
    std::string title;   // accessible name
};

std::string svgStyle(); // light, and dark where the reader prefers it; printed light

// One <svg> element. Up to 2,000 spans per row are drawn one by one; fuller rows as columns one unit wide in which ink
// is proportional to time. Empty for a step without busy time.
std::string timelineSvg(const Run& run, int step, const SvgOptions& options = {});
// Activation memory by rank over the same axis, the peak marked. Empty if the timeline has no memory.
std::string memorySvg(const Run& run, int step, const SvgOptions& options = {});
// Which colour means what, for the kinds that occur in the step.
std::string legendHtml(const Run& run, int step);

} // namespace stagewright
