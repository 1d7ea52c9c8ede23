// The plan of a run: its own schedule timed with the costs fitted from it, as if nothing had disturbed it. Compared
// with the run it shows what the order and the costs do not explain.
#pragma once

#include <optional>
#include <string>

#include "schedules/base/result.h"
#include "traces/compare/compare.h"
#include "traces/run/run.h"

namespace stagewright {

// Simulated, named after the run: "1F1B as planned". Usage error if the run has no schedule, Invalid if no costs can be
// fitted.
Result<Run> planOf(const Run& run);

// The first op of the run, by its planned start, that starts or ends more than 2 % of the planned makespan later or
// earlier than planned.
struct Deviation {
    OpDelta op;
    std::string sentence; // what it does and why: "1F3 on rank 1 starts 3.40 ms later than planned: rank 1 waits …"
};
// comparison: of planOf(run), which is A, with the run.
std::optional<Deviation> firstDeviation(const Run& plan, const Run& run, const Comparison& comparison);

} // namespace stagewright
