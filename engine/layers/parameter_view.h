// How a stage's parameters are stepped, and how others see them.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace stagewright {

enum class OptimizerKind {
    AdamW,
    Sgd,
    Kfac,
};
struct OptimizerConfig {
    OptimizerKind kind = OptimizerKind::AdamW;
    double learningRate = 3e-3;
    int warmupSteps = 10; // linear warm-up of the learning rate
    double beta1 = 0.9;
    double beta2 = 0.95;
    double epsilon = 1e-8;
    double weightDecay = 0.1; // matrices only
    double momentum = 0.0;    // Sgd
    // Kfac (kfac.h)
    double factorDecay = 0.95;
    double damping = 0.001;
    double klClip = 0.001;
    int refresh = 1;       // factors and inverses are of every so many-th step
    double clipNorm = 1.0; // global gradient norm; 0: no clipping
};

// A named parameter tensor of a stage, with its gradient accumulator. Views live as long as the StageModel.
struct ParameterView {
    std::string name; // "layer3.mlp.fc1.weight"
    std::vector<int> shape;
    std::span<float> value;
    std::span<float> gradient;
};

} // namespace stagewright
