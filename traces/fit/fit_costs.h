// Costs from a timeline: the median duration of each (kind, stage, rank) over the given steps (fit_durations.h: also
// from parts, stacked ops and pairs; microbatches and pairs that differ, jitter), launch delays, link latency from Data
// edges, memory from memory events.
// Law: fitCosts(simulatedTimeline(S, C)) == C for every (kind, stage, rank) that occurs, except a kind that occurs only
// in pairs with others of which the same is true; for launch, for pairs whose ops also occur alone, for whole unpaired
// ops of microbatches. Not for jitter, whose draws are not C's.
#pragma once

#include "schedules/base/result.h"
#include "schedules/model/cost_model.h"
#include "traces/run/run.h"

namespace stagewright {

// firstStep: earlier steps (warm-up) are ignored. Fails (Invalid) on a timeline without busy spans.
Result<CostModel> fitCosts(const Timeline& timeline, int firstStep = 0);

// The costs of a run: stored with it, else fitted from its measured steps, of a run without any from its last. Fails as
// fitCosts().
Result<CostModel> costsOf(const Run& run);

} // namespace stagewright
