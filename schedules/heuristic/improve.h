// Local search: letters of F, I and B change places, mostly those on the critical path, I's become B's and back, W's
// are put in again each time (WordRunner::fill). Internal to schedules/plan.
#pragma once

#include <cstdint>
#include <functional>

#include "schedules/heuristic/greedy.h"

namespace stagewright::planning {

struct ImproveLimits {
    std::int64_t tries = 10'000;
    Nanos enough = 0; // stops at this objective: a lower bound
    std::uint64_t seed = 1;
    std::function<bool()> stop; // asked every 64 tries; may be empty
};

// The best order met, never worse than start (which must be feasible). Accepts worse ones at a falling rate
// (annealing). The same input and the same number of tries give the same result. O(tries × letters).
Found improve(const Pipeline& pipeline, const Found& start, const ImproveLimits& limits);

Words withoutWeightGrads(const Words& words);

} // namespace stagewright::planning
