// Causal multi-head attention on the packed projection qkv (rows, 3 · hidden): query, key, value, each head's columns side
// by side. Heads are strided views, nothing is transposed or copied. Queries are taken in blocks of rows and each block
// sees the keys 0 … its own end only, so that most of the masked half is neither computed nor kept.
#pragma once

#include <cstddef>

#include "engine/cpu/kernels.h"

namespace stagewright::cpu {

struct AttentionShape {
    int batch;
    int tokens;
    int hidden;
    int heads;

    int rows() const { return batch * tokens; }
    int headWidth() const { return hidden / heads; }
    std::size_t probabilitiesPerHead() const;
    std::size_t probabilities() const; // floats kept from forward to backward
    std::size_t workspace() const;     // floats backward needs for itself
};

// out (rows, hidden) and probabilities are overwritten.
void attentionForward(const AttentionShape& shape, const Kernels& kernels, const float* qkv, float* probabilities,
                      float* out);
// qkvGrad (rows, 3 · hidden) is overwritten.
void attentionBackward(const AttentionShape& shape, const Kernels& kernels, const float* qkv, const float* probabilities,
                       const float* outGrad, float* qkvGrad, float* workspace);

} // namespace stagewright::cpu
