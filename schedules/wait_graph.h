// The wait-for graph of a schedule: who is blocked by whom.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/channels.h"
#include "schedules/cost_model.h"
#include "schedules/op_index.h"
#include "schedules/schedule.h"
#include "schedules/validate.h"

namespace stagewright {

// Runs the lists without times. Inputs that nobody makes, or that come later in the same rank's list, count as present:
// they are faults of another kind. The cycle in waiting order, from its smallest rank on; empty: no deadlock. O(ops).
std::vector<Wait> findDeadlock(const Schedule& schedule, const OpIndex& index, const Channels& channels = {});
// The shortest cycle among waits of blocked ranks, each of which may have several (of equal length the one with the smallest
// rank), in waiting order, from its smallest rank on.
std::vector<Wait> shortestCycle(int ranks, const std::vector<Wait>& waits);
std::string describeCycle(const std::vector<Wait>& cycle);

// Why list execution can't finish: the deadlock, else the first op that waits for a missing or later op.
Error blockedError(const Schedule& schedule, const CellSpace& cells, const Channels& channels = {});

// Delay of the message that `op` of `rank` takes from `stage` (its own stage + offset), for copies, counts, slices and
// halves too. slices: how many equal ones a microbatch has, where the schedule gives no lengths.
Nanos messageDelay(const Schedule& schedule, const Links& links, std::span<const Bytes> boundary, const Op& op,
                   int stage, int offset, int rank, int slices = 1);

} // namespace stagewright
