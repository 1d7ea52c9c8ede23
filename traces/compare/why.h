// The sentences of a comparison.
#pragma once

#include <string>
#include <vector>

#include "traces/compare/alignment.h"
#include "traces/compare/compare.h"

namespace stagewright {

// comparison: everything except the sentences is filled in.
std::string headlineOf(const Comparison& comparison, const Run& a, const Run& b);
std::vector<std::string> whyOf(const Comparison& comparison, const Alignment& alignment, const Run& a, const Run& b);

} // namespace stagewright
