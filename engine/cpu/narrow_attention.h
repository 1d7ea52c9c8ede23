// Attention on elements of bf16.
#pragma once

#include "engine/cpu/attention.h"

namespace stagewright::cpu {

// The same of bf16 elements (engine/layers/attention_sizes.h has the sizes of what is kept and of the workspaces).
void narrowAttentionForward(const AttentionShape& shape, const NarrowKernels& kernels, const NarrowProducts& products,
                            ConstElements query, int queryStride, std::span<const KeySegment> segments,
                            float* probabilities, Elements out, float* workspace);
void narrowAttentionBackward(const AttentionShape& shape, const NarrowKernels& kernels, const NarrowProducts& products,
                             ConstElements query, int queryStride, std::span<const KeySegment> segments,
                             const float* probabilities, ConstElements outGrad, Elements queryGrad,
                             std::span<const KeyGradSegment> gradients, float* workspace);

} // namespace stagewright::cpu
