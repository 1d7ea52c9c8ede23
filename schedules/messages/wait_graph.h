// The wait-for graph of lists that have stopped: who is blocked by whom. schedules/step/step_deadlock.h runs them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "schedules/base/result.h"
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

// What the op or pair at the head of a rank's list waits for, of another rank whose list has not come to it; heads: by
// rank, how many of its ops ran. onRank −1: nothing. Of a compute-only schedule.
Wait waitAt(const Schedule& schedule, const OpIndex& index, int rank, std::span<const std::size_t> heads);
// From the first rank that waits for another along these waits: the cycle in which they end, in waiting order, from its
// smallest rank on. Empty: there is none, or they end at a rank that waits for no other.
std::vector<Wait> cycleAt(const Schedule& schedule, const OpIndex& index, std::span<const std::size_t> heads);
// The shortest cycle among waits of blocked ranks, each of which may have several (of equal length the one with the
// smallest rank), in waiting order, from its smallest rank on.
std::vector<Wait> shortestCycle(int ranks, const std::vector<Wait>& waits);
std::string describeCycle(const std::vector<Wait>& cycle);

// Why lists can't be run to their end: this deadlock; without one the first op that waits for a missing or later op.
Error blockedError(const Schedule& schedule, const OpIndex& index, const std::vector<Wait>& cycle);

} // namespace stagewright
