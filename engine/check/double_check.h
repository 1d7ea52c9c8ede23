// A backend's loss and gradients against the same model in double precision (double_model.h), which shares no code with
// the engine.
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

// One microbatch of options.microbatchSize samples, at most four, through the undivided model in fp32. Plain loops in
// double are slow: of a large model its heads, width and sequence are cut until one microbatch needs no more than 200
// million multiplications. The weights are moved away from their small start, so that attention and norms matter. On
// the calling thread.
Result<DoubleComparison> compareWithDouble(const TrainingOptions& options);

} // namespace stagewright
