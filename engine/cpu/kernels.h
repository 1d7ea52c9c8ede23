// The loops that are not GEMMs, compiled once per instruction set (baseline, AVX2 with FMA, AVX-512) from
// kernels_body.h and chosen at run time. All arrays are row-major and dense: (rows, width). NaN passes through all of
// them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/device/kernel_arguments.h"

namespace stagewright::cpu {

using layers::AdamWStep;
using layers::BFloat16;
using layers::ColumnSums;

// E: float or BFloat16; computed in fp32.
template <typename E>
struct ElementKernels {
    // normal = (x − mean) / sqrt(variance + 1e-5); out = normal · gamma + beta. Afterwards adds `bias` to x where it is
    // not null: the bias of the layer whose output is added to the residual stream x next.
    void (*layerNorm)(int rows, int width, E* x, const E* bias, const E* gamma, const E* beta, E* normal,
                      float* inverseDeviation, E* out);
    void (*scaleShift)(int rows, int width, const E* normal, const E* gamma, const E* beta, E* out);
    // inputGrad = residual + gradient through the norm. residual may be null.
    void (*layerNormBackward)(int rows, int width, const E* outGrad, const E* normal, const float* inverseDeviation,
                              const E* gamma, const E* residual, E* inputGrad, const ColumnSums& sums);
    void (*addColumnSums)(int rows, int width, const E* x, float* sums);  // sums += Σ rows
    void (*gelu)(int rows, int width, const E* x, const E* bias, E* out); // tanh form, of x + bias
    void (*add)(std::size_t count, const E* x, float* sum);
};

// Between GEMMs whose results are fp32 and what is kept in bf16; `gemm` and `scores` are dense (rows, width),
// what has a stride is not.
struct Bf16Kernels : ElementKernels<BFloat16> {
    // bias may be null
    void (*storeRows)(int rows, int width, const float* gemm, const BFloat16* bias, BFloat16* out, int stride);
    void (*addRows)(int rows, int width, const float* gemm, BFloat16* sum, int stride);
    // As Kernels::geluBackward; outGrad dense, x and gradient with the stride.
    void (*geluBackward)(int rows, int width, int stride, BFloat16* x, const BFloat16* bias, const float* outGrad,
                         BFloat16* gradient, float* biasSums);
    // scores: overwritten
    void (*causalSoftmax)(int firstRow, int rows, int columns, float* scores, BFloat16* probabilities);
    void (*causalSoftmaxBackward)(int firstRow, int rows, int columns, const BFloat16* probabilities,
                                  const float* gradient, BFloat16* scoreGradient);
    double (*crossEntropy)(int rows, int vocabulary, BFloat16* logits, const std::uint8_t* targets);
    void (*embedRow)(int width, const BFloat16* token, const BFloat16* position, BFloat16* out); // the sum
};

struct Kernels : ElementKernels<float> {
    const char* name;
    void (*fillRows)(int rows, int width, const float* row, float* out);
    // x becomes gelu(x + bias), gradient (of the output) becomes the gradient of x; biasSums (width) is overwritten.
    void (*geluBackward)(int rows, int width, float* x, const float* bias, float* gradient, float* biasSums);
    // Rows firstRow … firstRow + rows − 1 of a causal score matrix, columns 0 … columns − 1: row r keeps columns ≤ r,
    // the others become zero.
    void (*causalSoftmax)(int firstRow, int rows, int columns, float* scores);
    // gradient of the probabilities becomes gradient of the scores.
    void (*causalSoftmaxBackward)(int firstRow, int rows, int columns, const float* probabilities, float* gradient);
    // logits become softmax(logits) − onehot(target). Returns the sum of −ln p(target) over the rows, in row order.
    double (*crossEntropy)(int rows, int vocabulary, float* logits, const std::uint8_t* targets);
    double (*squareSum)(std::size_t count, const float* x);

    void (*adamW)(std::size_t count, float* value, const float* gradient, float* moment1, float* moment2,
                  const AdamWStep& step);
    // velocity may be null (no momentum).
    void (*sgd)(std::size_t count, float* value, const float* gradient, float* velocity, float learningRate,
                float momentum, float weightDecay, float gradientScale);
    // The same step backwards, with its own arguments: equal but for rounding. Zero Bubble, arXiv 2401.10241, algorithm
    // 1.
    void (*undoAdamW)(std::size_t count, float* value, const float* gradient, float* moment1, float* moment2,
                      const AdamWStep& step);
    void (*undoSgd)(std::size_t count, float* value, const float* gradient, float* velocity, float learningRate,
                    float momentum, float weightDecay, float gradientScale);
    // out = value − reach · d; d is moment1, or AdamW's direction where moment2 is not null (no weight decay).
    void (*predict)(std::size_t count, const float* value, const float* moment1, const float* moment2, float reach,
                    const AdamWStep& step, float* out);
    Bf16Kernels bf16;
};

const Kernels& kernels(); // the best this machine can run

// One per build; null where the compiler has no such instruction set. For tests, which compare them.
const Kernels* baselineKernels();
const Kernels* avx2Kernels();
const Kernels* avx512Kernels();

} // namespace stagewright::cpu
