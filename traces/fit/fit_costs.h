// Costs from a timeline: the median duration of each (kind, stage, rank) over the given steps (fit_durations.h: also from
// parts, stacked ops and pairs; microbatches and pairs that differ, jitter), launch delays, link latency from Data edges, memory
// from memory events.
// Law: fitCosts(simulatedTimeline(S, C)) == C for every (kind, stage, rank) that occurs, but for a kind that stands only in
// pairs with others that do so too; for launch, for pairs whose ops occur alone, for whole unpaired ops of microbatches. Not for
// jitter, whose draws are not C's.
#pragma once

#include "schedules/base/result.h"
#include "schedules/cost_model.h"
#include "traces/run.h"

namespace stagewright {

// firstStep: steps before it (warm-up) are left out. Fails (Invalid) on a timeline without busy spans.
Result<CostModel> fitCosts(const Timeline& timeline, int firstStep = 0);

// The costs of a run: stored with it, else fitted from its measured steps, of a run without any from its last. Fails as fitCosts().
Result<CostModel> costsOf(const Run& run);
// What a usual step of the run takes: its stored costs, else fitted ones, without a jitter that was fitted (its draws are not the
// run's). Fails as fitCosts().
Result<CostModel> usualCosts(const Run& run);

} // namespace stagewright
