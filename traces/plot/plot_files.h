// A plot (schedules/base/plot.h) as text for files and pages: SVG, its points as CSV, and TikZ for papers.
#pragma once

#include <string>
#include <string_view>

#include "schedules/base/plot.h"
#include "schedules/base/result.h"

namespace stagewright {

// An element of a web page, whose style sheet has the colours (traces/plot/svg_colours.h). Empty for an empty plot.
std::string plotSvg(const Plot& plot, const std::string& title, double width = 1120, double height = 300);

// A picture of its own, light: the title above the plot and the caption below it, unless they are empty.
std::string plotPicture(const Plot& plot, const std::string& title, const std::string& caption, double width = 1120,
                        double height = 560);

// A line for each point, plots below included: plot, series, x, y, name, and of boxes their other corner. Places of named
// axes are written as their names.
std::string plotCsv(const Plot& plot);

// A tikzpicture as wide as its column, light: what the painter draws, texts in LaTeX's font.
std::string plotTikz(const Plot& plot, const std::string& title, const std::string& caption);

// The one that a path's suffix names: .svg, .csv or .tex. Usage error: another suffix.
Result<std::string> plotText(const Plot& plot, const std::string& title, const std::string& caption,
                             std::string_view path);

} // namespace stagewright
