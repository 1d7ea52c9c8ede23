// The timeline as text, for terminals: one row per rank, a cell of columns per op, idle as dots, a time ruler, a
// legend.
#pragma once

#include <string>

#include "schedules/timeline/timeline.h"

namespace stagewright {

// Draws one step of the compute lanes, at most `columns` wide (40 is the least). Ink is proportional to time: where ops
// are narrower than a column, the column shows what takes most of it. `colour`: 24-bit ANSI backgrounds by kind with
// the microbatch in the cell; else kind and microbatch as text. utf8 false: ASCII only. Ends with a newline; an empty
// step gives a line that says so.
std::string drawTimeline(const Timeline& timeline, int step, int columns, bool colour, bool utf8 = true);

} // namespace stagewright
