// A backend's loss and gradients against the same model in double precision (DoubleReference), which shares no code
// with the engine.
#pragma once

#include <string>

#include "engine/training/training.h"

namespace stagewright {

struct DoubleComparison {
    std::string backend;
    std::string model;            // what was compared, in words: "2 layers of 32, sequence 16"
    double gradientError = 0;     // largest ‖a−b‖₂ / ‖b‖₂ over tensors
    std::string farthestTensor;   // the one with that error
    double gradientTolerance = 0; // 1e-4
    double lossError = 0;         // |a−b| / |b|
    double lossTolerance = 0;     // 1e-5
    bool passed = false;
};

// One microbatch of options.microbatchSize samples, or fewer, through the undivided model in fp32. Plain loops in
// double are slow: a large model is cut (Workload::doubleForm). The weights are moved away from their small start, so
// that attention and norms matter. On the calling thread. Usage: a workload without a second implementation.
Result<DoubleComparison> compareWithDouble(const TrainingOptions& options);

} // namespace stagewright
