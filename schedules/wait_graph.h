// The wait-for graph of a schedule under buffered sends: who stands still because of whom.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/cost_model.h"
#include "schedules/op_index.h"
#include "schedules/schedule.h"
#include "schedules/validate.h"

namespace stagewright {

// Runs the lists without times. Inputs that nobody makes, or that stand later in the same rank's list, count as there:
// they are faults of another kind. The cycle in waiting order, from its smallest rank on; empty: no deadlock. O(ops).
std::vector<Wait> findDeadlock(const Schedule& schedule, const OpIndex& index);
std::string describeCycle(const std::vector<Wait>& cycle);

// Why list execution can't finish: the deadlock, else the first op that waits for a missing or later op.
Error blockedError(const Schedule& schedule, const CellSpace& cells);

// Delay of the message that `op` of `rank` takes from `stage` (its own stage + offset), for copies, counts and halves
// too.
Nanos messageDelay(const Schedule& schedule, const Links& links, std::span<const Bytes> boundary, const Op& op,
                   int stage, int offset, int rank);

} // namespace stagewright
