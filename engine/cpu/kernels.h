// The loops that are not matrix products, compiled once per instruction set (baseline, AVX2 with FMA, AVX-512) from
// kernels_body.h and chosen at run time. All arrays are row-major and dense: (rows, width). NaN passes through all of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/layers/kernel_arguments.h"

namespace stagewright::cpu {

using layers::AdamWStep;
using layers::ColumnSums;

struct Kernels {
    const char* name;

    // normal = (x − mean) / sqrt(variance + 1e-5); out = normal · gamma + beta. Afterwards adds `bias` to x where it is
    // not null: the bias of the layer whose output is added to the residual stream x next.
    void (*layerNorm)(int rows, int width, float* x, const float* bias, const float* gamma, const float* beta,
                      float* normal, float* inverseDeviation, float* out);
    void (*scaleShift)(int rows, int width, const float* normal, const float* gamma, const float* beta, float* out);
    // inputGrad = residual + gradient through the norm. residual may be null.
    void (*layerNormBackward)(int rows, int width, const float* outGrad, const float* normal,
                              const float* inverseDeviation, const float* gamma, const float* residual,
                              float* inputGrad, const ColumnSums& sums);
    void (*fillRows)(int rows, int width, const float* row, float* out);
    void (*addColumnSums)(int rows, int width, const float* x, float* sums); // sums += Σ rows

    // GELU, tanh form, of x + bias.
    void (*gelu)(int rows, int width, const float* x, const float* bias, float* out);
    // x becomes gelu(x + bias), gradient (of the output) becomes the gradient of x; biasSums (width) is overwritten.
    void (*geluBackward)(int rows, int width, float* x, const float* bias, float* gradient, float* biasSums);

    // Rows firstRow … firstRow + rows − 1 of a causal score matrix, columns 0 … columns − 1: row r keeps columns ≤ r,
    // the others become zero.
    void (*causalSoftmax)(int firstRow, int rows, int columns, float* scores);
    // gradient of the probabilities becomes gradient of the scores.
    void (*causalSoftmaxBackward)(int firstRow, int rows, int columns, const float* probabilities, float* gradient);

    // logits become softmax(logits) − onehot(target). Returns the sum of −ln p(target) over the rows, in row order.
    double (*crossEntropy)(int rows, int vocabulary, float* logits, const std::uint8_t* targets);

    void (*add)(std::size_t count, const float* x, float* sum);
    double (*squareSum)(std::size_t count, const float* x);
    void (*adamW)(std::size_t count, float* value, const float* gradient, float* moment1, float* moment2,
                  const AdamWStep& step);
    // velocity may be null (no momentum).
    void (*sgd)(std::size_t count, float* value, const float* gradient, float* velocity, float learningRate,
                float momentum, float weightDecay, float gradientScale);

    // The same step backwards, with its own arguments: equal but for rounding. Zero Bubble, arXiv 2401.10241, algorithm 1.
    void (*undoAdamW)(std::size_t count, float* value, const float* gradient, float* moment1, float* moment2,
                      const AdamWStep& step);
    void (*undoSgd)(std::size_t count, float* value, const float* gradient, float* velocity, float learningRate,
                    float momentum, float weightDecay, float gradientScale);
    // out = value − reach · d; d is moment1, or AdamW's direction where moment2 is not null (no weight decay).
    void (*predict)(std::size_t count, const float* value, const float* moment1, const float* moment2, float reach,
                    const AdamWStep& step, float* out);
};

const Kernels& kernels(); // the best this machine can run

// One per build; null where the compiler has no such instruction set. For tests, which compare them.
const Kernels* baselineKernels();
const Kernels* avx2Kernels();
const Kernels* avx512Kernels();

} // namespace stagewright::cpu
