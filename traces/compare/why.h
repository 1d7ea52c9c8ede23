// The sentences of a comparison.
#pragma once

#include <string>
#include <vector>

#include "traces/compare/alignment.h"
#include "traces/compare/compare.h"

namespace stagewright {

// comparison: everything except the sentences is filled in.
// What the runs were made under and differ in, other than the schedule and its shape: "disturbance and memory cap"; "":
// nothing that is known of both.
std::string changedConditions(const Comparison& comparison);
// With other conditions these come first.
std::string headlineOf(const Comparison& comparison, const Run& a, const Run& b);
std::vector<std::string> whyOf(const Comparison& comparison, const Alignment& alignment, const Run& a, const Run& b);

} // namespace stagewright
