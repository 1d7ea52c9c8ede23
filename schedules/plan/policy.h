// List scheduling by a rule for each rank, and the search for good rules: few numbers decide about any number of
// microbatches, so the search finds the rhythm of a large shape that moving single passes does not. Internal to
// schedules/plan.
#pragma once

#include <cstdint>
#include <functional>

#include "schedules/heuristic/greedy.h"

namespace stagewright::planning {

// What a rank does next, of the passes that could start.
struct RankRule {
    int open[2] = {1, 1};                  // by chunk: most microbatches between F and gradient; caps count besides
    int pending = 1;                       // so many W's left to do make W come first
    double patience = 0;                   // waits for a gradient that is known to come within this part of an F
    double partial = 0.5;                  // a W may delay what is known to come by 1 − this part of itself
    bool forwardFirst[2] = {false, false}; // by chunk: F before a gradient that could start as well
    bool upperForward = true;              // two chunks: F of the second chunk before F of the first
    bool upperGradient = true;             // likewise gradients
    bool full = false;                     // full backwards where the pipeline has them; else where an I doesn't fit
    int fullAbove = 1'000'000;             // full backwards as well where so many W's are left to do
};
using Policy = std::vector<RankRule>; // by rank

// Empty where a cap is below leastMemory() or the rules get stuck. O(letters × ranks).
Found follow(const Pipeline& pipeline, const Policy& policy);

struct PolicyLimits {
    std::int64_t tries = 1000;
    Nanos enough = 0; // stops at this objective
    std::uint64_t seed = 1;
    std::function<bool()> stop; // asked every 8 tries; may be empty
};

struct PolicyFound {
    Found found;
    Policy policy;
    std::int64_t tries = 0;
};

// Goes on from `start` (empty: from rules of 1F1B and zero-bubble kind). Same input and number of tries, same result.
PolicyFound searchPolicies(const Pipeline& pipeline, const Policy& start, const PolicyLimits& limits);

} // namespace stagewright::planning
