// Timing a schedule with the costs of a model.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/base/units.h"
#include "schedules/execute/place.h"
#include "schedules/messages/channels.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"

namespace stagewright {

// Durations from the cost model, then place(), then activation peaks (B frees at its end, I its part, W the rest).
Result<SimResult> simulate(const Schedule& schedule, const CostModel& costs, const Channels& channels = {});
// The same for an order of any state: PlacePolicy::Relaxed, and nothing is freed that is not held (Unheld::LeftOut).
// Equal to simulate() where that succeeds.
SimResult simulateRelaxed(const Schedule& schedule, const CostModel& costs);

// Rank-major: what place() takes. With microbatches' own durations, pairs' own (each op its part, so that both come to
// it) and jitter (of step 0).
std::vector<Nanos> durationsOf(const Schedule& schedule, const CostModel& costs);
// When a rank's op changes what it holds of activations: at its end, or at its start where its kind says so. The first
// op of an overlapped pair does halfway through, before the second one changes its own.
Nanos activationChangesAt(const Schedule& schedule, const SimResult& result, int rank, std::size_t position);
std::vector<Bytes> activationPeaks(const Schedule& schedule, const CostModel& costs); // by rank

// Headline figures; the formulas are in docs/numbers.md.
struct SimFigures {
    Nanos makespan = 0;        // of the window, from the first busy start to the last busy end
    Nanos step = 0;            // the whole step: with gathers, reductions, optimizers, fillers before and behind it
    Nanos busy = 0;            // F, B, I, W, R over all ranks
    double bubbleFraction = 0; // idle / (ranks × window); optimizers and collectives on compute lanes are not idle
    double bubbleRateSpan = 0; // 1 − ideal / span, ideal = busy of the rank with the longest span
};
SimFigures figuresOf(const Schedule& schedule, const SimResult& result);

} // namespace stagewright
