// A device's layers against those of the CPU: the same undivided model, the same data, a step at a time on one rank.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "engine/training/training.h"
#include "schedules/check/checked_schedule.h"

namespace stagewright {

// In bf16 a number is rounded to 2⁻⁹ of itself wherever one layer hands it to the next: in a block some 12 times on the
// way up and 12 on the way down. Roundings are independent, so that errors grow with the root of their number: three
// times that, 3 · 2⁻⁹ · √(24 layers), is what the largest of a tensor's gradients may be off by. 0.06 of 4 layers, 0.08
// of 8, 0.1 of 12.
double bf16GradientTolerance(int layers);

struct BackendComparison {
    std::string backend;
    Precision precision = Precision::Fp32;
    double gradientError = 0; // first step: largest ‖a−b‖∞ / ‖b‖∞ over tensors, against the CPU's gradients in fp32
    std::string farthestTensor;   // the one with that error
    double gradientTolerance = 0; // 1e-4 in fp32, 1e-2 in tf32; in bf16 bf16GradientTolerance()
    double lossError = 0;         // largest |a−b| / |b| over the steps' losses
    double lossTolerance = 0;     // 1e-4 in fp32, 1e-2 in tf32, 2e-2 in bf16
    int steps = 0;
    bool passed = false;
};

// options.backend, options.device and options.workload say what is compared; steps ≥ 1, microbatches of one step ≥ 1.
// Models wider than 64 train at a rate that falls with the width.
Result<BackendComparison> compareWithCpu(const TrainingOptions& options, int microbatches, int steps,
                                         const std::stop_token& stop);

} // namespace stagewright
