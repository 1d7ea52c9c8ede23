// Attention on elements of bf16.
#pragma once

#include "engine/cpu/attention.h"

namespace stagewright::cpu {

// The same of bf16 elements (engine/layers/attention_sizes.h has the sizes of what is kept and of the workspaces).
void bf16AttentionForward(const AttentionShape& shape, const Bf16Kernels& kernels, const Bf16Gemm& gemm,
                          ConstElements query, int queryStride, std::span<const KeySegment> segments,
                          float* probabilities, Elements out, float* workspace);
void bf16AttentionBackward(const AttentionShape& shape, const Bf16Kernels& kernels, const Bf16Gemm& gemm,
                           ConstElements query, int queryStride, std::span<const KeySegment> segments,
                           const float* probabilities, ConstElements outGrad, Elements queryGrad,
                           std::span<const KeyGradSegment> gradients, float* workspace);

} // namespace stagewright::cpu
