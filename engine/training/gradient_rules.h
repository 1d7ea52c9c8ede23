// What happens to gradients between the last weight gradient and the optimizer; the same in training and replay.
#pragma once

#include <span>
#include <vector>

#include "engine/device/backend.h"
#include "schedules/model/schedule.h"

namespace stagewright {

// What multiplies every gradient before the optimizer, and whether it steps at all.
struct Verdict {
    float scale = 1;   // < 1: clipped
    bool skip = false; // a gradient is not finite: the step is skipped
};
// squareSums: of each stage's gradients, summed in stage order in double. clipNorm 0: no clipping.
Verdict judgeGradients(std::span<const double> squareSums, double clipNorm);

// 1 / microbatches that one optimizer step applies: all of them, or one where each is followed by a step.
float lossScaleOf(const Schedule& schedule);

// All gradients of a stage, in the order of its parameters.
std::size_t gradientCount(StageModel& model);
void copyGradients(StageModel& model, std::span<float> to);
// Replaces the gradients of `model` by the sum over copies of the stage, in the order given (by rank), element by element.
void sumGradients(StageModel& model, std::span<const std::span<const float>> copies);

} // namespace stagewright
