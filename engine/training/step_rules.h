// Where a schedule's Optimizer and ReduceGrad ops may be, and what follows for the weights of each forward.
#pragma once

#include "engine/training/execution_plan.h"

namespace stagewright {

// Checks (Usage) and completes the plan (PlannedOp::predictedUpdates):
//   Synchronous            no Optimizer op, or one for each stage after its last weight gradient, and no copies; where
//                          ranks share state, one for each stage behind all other ops but gathers, and its reductions
//                          before them
//   Stashed, Predicted     one after each microbatch's weight gradient, before the next one's
//   TwoVersions            one for each stage after its last weight gradient
// ReduceGrad comes after the last weight gradient of its stage on the rank. Copies of a stage train synchronously only.
Result<void> planSteps(const Schedule& schedule, ExecutionPlan& plan);

// How many optimizer steps a stage's F lags behind its I or B, by stage and microbatch (the delay of the weights that
// the gradient was computed with, under WeightRule::Stashed). PipeDream: at most p − 1 − stage.
std::vector<std::vector<int>> updatesBetween(const Schedule& schedule);

} // namespace stagewright
