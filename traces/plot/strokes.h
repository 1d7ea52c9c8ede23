// What is painted of several lines and texts at once, and the inks of axes, texts and marks.
#pragma once

#include <string_view>
#include <vector>

#include "traces/plot/canvas.h"

namespace stagewright {

namespace ink {
inline constexpr PlotInk textInk{PlotHue::Text}, secondary{PlotHue::Secondary}, faint{PlotHue::Faint},
    ground{PlotHue::Ground}, accent{PlotHue::Accent}, grid{PlotHue::Grid}, separator{PlotHue::Separator};
} // namespace ink

void stroke(PlotCanvas& canvas, PlotPlace from, PlotPlace to, const PlotStroke& with);
// The parts of a line that are inside a box.
void strokeInside(PlotCanvas& canvas, const std::vector<PlotPlace>& places, const PlotBox& box, const PlotStroke& with);
void outline(PlotCanvas& canvas, const PlotBox& box, const PlotStroke& with);
void paintShape(PlotCanvas& canvas, PlotPlace at, PlotShape shape, double radius, PlotInk ink);
// Whole words, in as many lines as it takes, from the top of the box or around its middle.
void paintParagraph(PlotCanvas& canvas, const PlotBox& box, std::string_view words, PlotInk ink, PlotAlign align);

} // namespace stagewright
