// Costs from a timeline: the median duration of each (kind, stage, rank) over the given steps (fit_durations.h: also from
// parts, stacked ops and pairs), link latency from Data edges, memory from memory events.
// Law: fitCosts(simulatedTimeline(S, C)) == C for every (kind, stage, rank) that occurs, but for a kind that stands only in
// pairs with others that do so too.
#pragma once

#include "schedules/base/result.h"
#include "schedules/cost_model.h"
#include "traces/run.h"

namespace stagewright {

// firstStep: steps before it (warm-up) are left out. Fails (Invalid) on a timeline without busy spans.
Result<CostModel> fitCosts(const Timeline& timeline, int firstStep = 0);

} // namespace stagewright
