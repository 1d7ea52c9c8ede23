// What compare prints: two to four runs, each against the first. As text, and as the JSON object.
#pragma once

#include <span>
#include <string>

#include "traces/compare/compare.h"

namespace stagewright {

class Json;

// comparisons[i] is of runs[0] and runs[i + 1]. ops: how many of the moved ops are listed.
std::string comparisonText(std::span<const Run> runs, std::span<const Comparison> comparisons, std::size_t ops,
                           bool colour);

} // namespace stagewright
