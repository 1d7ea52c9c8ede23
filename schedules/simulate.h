// Timing a schedule. place() is the one list execution that simulator, virtual clock and what-if share: each rank runs its
// list in order, each op starts as early as its rank, its inputs and the links allow (specs: "list execution").
#pragma once

#include <span>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/base/units.h"
#include "schedules/cost_model.h"
#include "schedules/schedule.h"

namespace stagewright {

// Rank-major: the ops of rank 0 in order, then rank 1 … ; offsets[r] is the first of rank r, offsets[ranks] the total.
struct SimResult {
    std::vector<std::size_t> offsets;
    std::vector<Nanos> start;
    std::vector<Nanos> end;
    Nanos makespan = 0;               // last end − 0
    Nanos span = 0;                   // longest first-start-to-last-end of any one rank
    std::vector<Bytes> peakActivation; // by rank; depends on the order only; empty after place()

    std::size_t indexOf(int rank, std::size_t position) const { return offsets[static_cast<std::size_t>(rank)] + position; }
};

// durations: rank-major, one per op. boundary: message bytes by stage (may be empty: 0). O(ops).
// Fails with ErrorCode::Invalid and the wait cycle in the message where the order deadlocks.
// A paired op (Schedule::paired) is one interval of the sum of both, inputs of both needed at its start. A recomputation
// paired with its backward needs the inputs of both at its start as well, and the backward follows it.
Result<SimResult> place(const Schedule& schedule, std::span<const Nanos> durations, const Links& links,
                        std::span<const Bytes> boundary = {});

// Durations from the cost model, then place(), then activation peaks (B frees at its end, I its part, W the rest).
Result<SimResult> simulate(const Schedule& schedule, const CostModel& costs);

std::vector<Nanos> durationsOf(const Schedule& schedule, const CostModel& costs); // rank-major
std::vector<Bytes> activationPeaks(const Schedule& schedule, const CostModel& costs); // by rank

// Headline figures; the formulas stand in docs/numbers.md.
struct SimFigures {
    Nanos busy = 0;            // F, B, I, W, R over all ranks
    double bubbleFraction = 0; // 1 − busy / (ranks × makespan)
    double bubbleRateSpan = 0; // 1 − ideal / span, ideal = busy of the rank with the longest span
};
SimFigures figuresOf(const Schedule& schedule, const SimResult& result);

} // namespace stagewright
