// A strategy for each layer (recomputation, ZeRO, sharding …) so that the step is fastest within a memory budget: the sum
// of the layers' times and of the changes between neighbours is least (Galvatron, Miao et al. 2022, arXiv 2211.13878).
// Exact: a dynamic program over sets of (memory, time) of which none is worse in both.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/base/result.h"

namespace stagewright {

struct LayerStrategyProblem {
    std::vector<std::vector<std::int64_t>> time, memory; // by layer and strategy
    std::vector<std::vector<std::int64_t>> change;       // from a layer's strategy to the next one's
    std::int64_t budget = 0;
};
struct LayerStrategyPlan {
    std::int64_t time = 0;
    std::int64_t memory = 0;     // the least of the fastest
    std::int64_t choices = 0;    // as fast, within the budget
    std::vector<int> strategies; // one of them, by layer
};
// None: nothing fits. Usage: tables whose sizes differ, numbers below 0.
Result<std::optional<LayerStrategyPlan>> chooseStrategies(const LayerStrategyProblem& problem);

} // namespace stagewright
