// The window's palette for pictures of text: SVG in web pages, whose style sheet has these colours as variables, and
// pictures of their own, which are light.
#pragma once

#include <string>
#include <string_view>

#include "schedules/base/plot.h"

namespace stagewright {

// Rules of a style sheet, "--f:#2F5D9C;…".
extern const std::string_view lightColours, darkColours;
std::string_view lightColour(std::string_view name); // of the light palette: "f", "grid"; "#2F5D9C"
std::string_view colourName(PlotInk ink);            // "f"; as if its strength were 1
std::string lightColour(PlotInk ink);                // "#2F5D9C", mixed with white
// "&", "<", ">", quotes escaped; control characters and broken UTF-8 become U+FFFD; C1 and marks of direction become
// escapes, as in schedules/base/shown_text.h.
std::string escaped(std::string_view text);

} // namespace stagewright
