// Ladder: from run A to run B by one change at a time, each simulated: split the backward, place the weight gradients,
// the order of forwards and backwards, the placement or shape, gathers and reductions, the links, the costs; and what
// the costs do not explain. The rungs' changes sum to the change of the step, and the last rung is B.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "schedules/base/result.h"
#include "traces/run/run.h"

namespace stagewright {

enum class RungKind {
    Start,
    Split,
    Place,
    Order,
    Placement,
    Sharing, // gathers, reductions, optimizer steps
    Messages,
    Wire,
    Costs,
    Rest,
};

struct LadderRung {
    RungKind kind = RungKind::Start;
    std::string title;  // "the backward is split into I and W"
    Nanos makespan = 0; // of the whole step after it: A's measured one plus the changes so far
    Nanos change = 0;
    std::optional<Bytes> peak; // largest activation peak of any rank, simulated; empty: the costs have no sizes
};
std::string_view toText(RungKind kind); // "start", "split" … the JSON keys

// makespans: of the compared steps as recorded, gathers, reductions and the optimizer included. Usage error if the runs
// are in different units, one has no schedule, or its order can't be simulated. Rungs that do not change the orders,
// links or costs are omitted; those that change them but not the time stay. O(ops) for each rung, before which
// Cancelled: stop.
Result<std::vector<LadderRung>> ladderOf(const Run& a, Nanos makespanA, const Run& b, Nanos makespanB,
                                         const std::stop_token& stop = {});

// A's costs for the stages of another schedule: a stage takes its part of the model from the stages it covers; kinds
// that A's costs lack are taken from B's, scaled by the forwards, I and W so that they sum to A's B if that is known.
CostModel costsOnStagesOf(const Schedule& target, const CostModel& a, const CostModel& b);

} // namespace stagewright
