// What happens to gradients between the last weight gradient and the optimizer; the same in training and replay.
#pragma once

#include <span>
#include <vector>

#include "engine/workload/workload.h"
#include "schedules/model/partial_backward.h"
#include "schedules/model/schedule.h"

namespace stagewright {

class BatchShapes;

// What multiplies every gradient before the optimizer, and whether it steps at all.
struct Verdict {
    float scale = 1;   // < 1: clipped
    bool skip = false; // a gradient is not finite: the step is skipped
};
// squareSums: of each stage's gradients, summed in stage order in double. clipNorm 0: no clipping.
Verdict judgeGradients(std::span<const double> squareSums, double clipNorm);

// 1 / microbatches that one optimizer step applies: all of them, or one where each is followed by a step.
float lossScaleOf(const Schedule& schedule);

// Partial backward: which copies of a stage, by rank, contribute to which of its elements, and how their sum becomes
// their mean. cuts: by replica; elements: of the flat vector, padding included.
std::vector<ContributedRange> contributionsTo(const Schedule& schedule, const Workload& workload,
                                              const StageSlice& slice, std::span<const int> cuts,
                                              const BatchShapes& shapes, std::int64_t elements);
// The same for one copy: its first element with a gradient; all of them where it goes back further, none where it does
// not reach the stage.
std::int64_t firstLearned(const Workload& workload, const StageSlice& slice, int cut, std::int64_t elements);

// All gradients of a stage, in the order of its parameters.
std::size_t gradientCount(StageModel& model);
void copyGradients(StageModel& model, std::span<float> to);
// Replaces the gradients of `model` by the sum over copies of the stage, in the order given (by rank), element by
// element.
void sumGradients(StageModel& model, std::span<const std::span<const float>> copies);

} // namespace stagewright
