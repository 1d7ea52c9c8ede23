// Plain arguments of the loops and kernels under the layers. Nothing of a library: the CPU's loops are compiled for
// several instruction sets and may bring no inline function along.
#pragma once

#include <cstdint>

namespace stagewright::layers {

// An element of bf16: the upper half of a float.
struct BFloat16 {
    std::uint16_t bits;
};

// Sums over rows that the backward of a LayerNorm gives as by-products; each (width), overwritten; may be null.
struct ColumnSums {
    float* gamma;    // Σ outGrad · normal
    float* beta;     // Σ outGrad
    float* residual; // Σ residual
    float* input;    // Σ inputGrad
};

struct AdamWStep {
    float learningRate;
    float beta1, beta2;
    float correction1, correction2; // 1 / (1 − betaᵏ)
    float epsilon;
    float weightDecay;
    float gradientScale;
};

} // namespace stagewright::layers
