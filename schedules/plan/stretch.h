// Orders of few microbatches made into orders of many: the rhythm in the middle is repeated. Internal to
// schedules/plan.
#pragma once

#include "schedules/heuristic/fill.h"

namespace stagewright::planning {

// The same ranks, costs, caps and origins with another number of microbatches.
Pipeline withMicrobatches(const Pipeline& pipeline, int microbatches);

// F, I and B of an order with `microbatches` in all, from one with fewer. starts: of its letters, by rank. Microbatches
// from `first` on, `period` of them, are repeated until there are enough, each time as much later as a period of rank 0
// takes; the others keep their distances. Sorted by these times, with microbatches in rising order: caps and times are
// for WordRunner::fill to see to. Precondition: first + period < the order's own microbatches, period divides those
// that are missing.
Words stretched(const Pipeline& few, const Words& words, const std::vector<std::vector<Nanos>>& starts,
                int microbatches, int first, int period);

// The best of many ways to stretch an order, its W's put in; empty where none keeps the caps.
struct Stretched {
    Words words;
    Nanos objective = 0;
    Nanos makespan = 0;
    std::int64_t tries = 0;
};
Stretched bestStretch(const Pipeline& few, const Words& words, const Pipeline& many);

} // namespace stagewright::planning
