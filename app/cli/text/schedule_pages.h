// The library as one page of Markdown, docs/schedules.md: a table, then of each schedule what it is, paper,
// constraints, parameters, formulas and the figures of its variants. Pictures are docs/schedules/NAME.svg, which the
// page only names.
#pragma once

#include <string>

#include "schedules/base/result.h"

namespace stagewright {

// Figures are at unit costs on four ranks and eight microbatches, or the nearest shape that a schedule takes.
Result<std::string> schedulePages();

} // namespace stagewright
