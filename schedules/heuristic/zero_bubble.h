// The zero-bubble heuristic for one chunk: warm-up forwards while they come for free, then I and F by turns, W's where
// they cost nothing. Qi et al. 2024, arXiv 2401.10241, section 3.1 (its idea; the formulation here is words and
// WordRunner::fill). Internal to schedules/plan.
#pragma once

#include "schedules/heuristic/greedy.h"

namespace stagewright::planning {

// F and I of one chunk: forwards[r] warm-up F on rank r (at least 1, at most m), then I and F by turns.
Words alternatingWords(const Pipeline& pipeline, const std::vector<int>& warmup);

// Tries, where the pipeline has full backwards also with these in place of all I's, four warm-ups (may the last forward
// overshoot the first gradient; must the counts fall from rank to rank) with three rules for waits shorter than a W,
// the warm-ups of ZB-H1 and ZB-H2 and, up to 5,000 ranks × microbatches, list scheduling; the best by objective, then
// makespan. Precondition: one chunk. O(variants × letters). Empty where a cap is below leastMemory().
Found zeroBubble(const Pipeline& pipeline);

} // namespace stagewright::planning
