// Causal multi-head attention on the packed projection qkv (rows, 3 · hidden): query, key, value, each head's columns
// side by side. Heads are strided views, nothing is transposed or copied. Queries are taken in blocks of rows and each
// block sees the keys 0 … its own end only, so that most of the masked half is neither computed nor kept. The keys of
// earlier slices of the sequence are in separate segments, followed by the slice's own keys.
#pragma once

#include <cstddef>
#include <span>

#include "engine/cpu/gemm.h"
#include "engine/cpu/kernels.h"
#include "engine/device/math.h"
#include "engine/layers/attention_sizes.h"

namespace stagewright::cpu {

using layers::ConstElements;
using layers::Elements;
using layers::KeyGradSegment;
using layers::KeySegment;

// query: (rows, …) with queryStride; segments: the slices in order, the query's own last. out (rows, hidden) and
// probabilities are overwritten.
void attentionForward(const AttentionShape& shape, const Kernels& kernels, const Gemm& gemm, const float* query,
                      int queryStride, std::span<const KeySegment> segments, float* probabilities, float* out);
// queryGrad, with queryStride, is overwritten; gradients has one entry a segment.
void attentionBackward(const AttentionShape& shape, const Kernels& kernels, const Gemm& gemm, const float* query,
                       int queryStride, std::span<const KeySegment> segments, const float* probabilities,
                       const float* outGrad, float* queryGrad, std::span<const KeyGradSegment> gradients,
                       float* workspace);

} // namespace stagewright::cpu
