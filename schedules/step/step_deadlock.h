// Whether lists can end: run without times, by a StepRun or a PlainRun, as far as they go.
#pragma once

#include <vector>

#include "schedules/base/result.h"
#include "schedules/messages/wait_graph.h"
#include "schedules/step/step_run.h"

namespace stagewright {

// Inputs that nobody makes, or that come later in the same rank's list, count as present: they are faults of another
// kind. The cycle in waiting order, from its smallest rank on; empty: no deadlock. O(ops).
std::vector<Wait> findDeadlock(const Schedule& schedule, const OpIndex& index, const Channels& channels = {});
// By rank, how many ops of its list run before one whose input is not in the schedule, comes later in the same list, or
// waits for such an op. Of a compute-only schedule. O(ops).
std::vector<std::size_t> runnableOps(const Schedule& schedule, const OpIndex& index);
// What blocks the ranks of a run that did not end, rank after rank.
std::vector<Wait> waitsOf(const StepRun& run, const StepPlan& plan);
// Why list execution can't finish: the deadlock, else the first op that waits for a missing or later op.
Error listError(const Schedule& schedule, const CellSpace& cells, const Channels& channels = {});

} // namespace stagewright
