// Timing a schedule. place() is the one list execution that simulator, virtual clock and what-if share: each rank runs its
// list in order, each op starts as early as its rank, its inputs and the links allow (specs: "list execution").
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/base/units.h"
#include "schedules/channels.h"
#include "schedules/cost_model.h"
#include "schedules/schedule.h"

namespace stagewright {

// A message of a lowered schedule, in time: send posted, receive posted, on the wire, arrived. Between what both sides posted and
// the start it waits for a free channel (head of line); produced but not yet posted, it is behind other messages in the
// sender's list. −1: that side is missing.
struct MessageTimes {
    std::uint32_t send = 0;    // ops, numbered as start and end below
    std::uint32_t receive = 0;
    Nanos sendPosted = -1;
    Nanos receivePosted = -1;
    Nanos begin = -1;
    Nanos arrival = -1;
};

// Rank-major: the ops of rank 0 in order, then rank 1 … ; offsets[r] is the first of rank r, offsets[ranks] the total.
struct SimResult {
    std::vector<std::size_t> offsets;
    std::vector<Nanos> start;
    std::vector<Nanos> end;
    Nanos makespan = 0;               // last end − 0
    Nanos span = 0;                   // longest first-start-to-last-end of any one rank
    std::vector<Bytes> peakActivation; // by rank; depends on the order only; empty after place()
    std::vector<MessageTimes> messages; // of a lowered schedule. Its sends and receives last while their rank waits at them

    std::size_t indexOf(int rank, std::size_t position) const { return offsets[static_cast<std::size_t>(rank)] + position; }
};

// What happens where no rank can go on. Strict: an error. Relaxed, for orders under edit: the op at the head of the lowest rank
// that waits starts without what is missing; ops outside the schedule's shape need and make nothing; nothing fails.
enum class PlacePolicy { Strict, Relaxed };

// durations: rank-major, one per op. boundary: message bytes by stage (may be empty: 0). O(ops).
// Fails with ErrorCode::Invalid and the wait cycle in the message where the order deadlocks.
// A paired op (Schedule::paired) is one interval of the sum of both, inputs of both needed at its start.
// channels (schedules/channels.h) concern lowered schedules; a compute-only one is taken to send at each op's end and to
// receive whenever a message comes. REDUCE_GRAD of a stage with copies begins on all their ranks when the last has come to it.
Result<SimResult> place(const Schedule& schedule, std::span<const Nanos> durations, const Links& links,
                        std::span<const Bytes> boundary = {}, const Channels& channels = {},
                        PlacePolicy policy = PlacePolicy::Strict);

// Durations from the cost model, then place(), then activation peaks (B frees at its end, I its part, W the rest).
Result<SimResult> simulate(const Schedule& schedule, const CostModel& costs, const Channels& channels = {});
// The same for an order of any state: PlacePolicy::Relaxed, and nothing is freed that is not held (Unheld::LeftOut). Equal to
// simulate() where that succeeds.
SimResult simulateRelaxed(const Schedule& schedule, const CostModel& costs);

// Rank-major: what place() takes. With microbatches' own durations, pairs' own (each op its part, so that both come to it) and
// jitter (of step 0).
std::vector<Nanos> durationsOf(const Schedule& schedule, const CostModel& costs);
std::vector<Bytes> activationPeaks(const Schedule& schedule, const CostModel& costs); // by rank

// Headline figures; the formulas are in docs/numbers.md.
struct SimFigures {
    Nanos makespan = 0;        // of the window, from the first busy start to the last busy end
    Nanos busy = 0;            // F, B, I, W, R over all ranks
    double bubbleFraction = 0; // idle / (ranks × window); optimizers and collectives in lists are not idle
    double bubbleRateSpan = 0; // 1 − ideal / span, ideal = busy of the rank with the longest span
};
SimFigures figuresOf(const Schedule& schedule, const SimResult& result);

} // namespace stagewright
