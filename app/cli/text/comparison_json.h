// A comparison as JSON.
#pragma once

#include <span>

#include "traces/compare/compare.h"

namespace stagewright {

class Json;

// Two runs: the keys of their comparison. Further ones are under "more", each with the same keys.
Json comparisonJson(std::span<const Run> runs, std::span<const Comparison> comparisons);

} // namespace stagewright
