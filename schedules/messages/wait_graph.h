// The wait-for graph of a schedule: who is blocked by whom.
#pragma once

#include <string>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/messages/channels.h"
#include "schedules/model/op_index.h"
#include "schedules/model/schedule.h"

namespace stagewright {

// One edge of the wait-for graph that closes a cycle: the op at the head of `rank` waits for `waitsFor` on `onRank`.
struct Wait {
    int rank = 0;
    int position = 0;
    Op op;
    int onRank = 0;
    int onPosition = 0;
    Op waitsFor;
};

// Runs the lists without times. Inputs that nobody makes, or that come later in the same rank's list, count as present:
// they are faults of another kind. The cycle in waiting order, from its smallest rank on; empty: no deadlock. O(ops).
std::vector<Wait> findDeadlock(const Schedule& schedule, const OpIndex& index, const Channels& channels = {});
// By rank, how many ops of its list run before one whose input is not in the schedule, comes later in the same list, or
// waits for such an op. Of a compute-only schedule. O(ops).
std::vector<std::size_t> runnableOps(const Schedule& schedule, const OpIndex& index);
// The shortest cycle among waits of blocked ranks, each of which may have several (of equal length the one with the
// smallest rank), in waiting order, from its smallest rank on.
std::vector<Wait> shortestCycle(int ranks, const std::vector<Wait>& waits);
std::string describeCycle(const std::vector<Wait>& cycle);

// Why list execution can't finish: the deadlock, else the first op that waits for a missing or later op.
Error blockedError(const Schedule& schedule, const CellSpace& cells, const Channels& channels = {});

} // namespace stagewright
