// The layers of a decoder: embedding, block, head. Each has forward, input gradient and weight gradient apart and keeps, by
// microbatch, only what the calls to come need. M = batch × tokens rows, H = hidden.
//
// The residual stream is one buffer (M, H) that the blocks change in place: nothing of it is kept. What a block keeps, in
// units of M·H floats (P: attention probabilities, about heads · tokens / 2 per row):
//   after forward      normal1 1, qkv 3, P, attention 1, normal2 1, pre-activation 4                       = 10 + P
//   after inputGrad    normal1 1, attention 1, normal2 1, activation 4,
//                      and gradients: output 1, hidden 4, middle 1, qkv 3                                   = 16
// The sums over rows that give bias and LayerNorm gradients fall out of inputGrad's passes; they are kept as 13·H floats
// and added to the accumulators by weightGrad like every other weight gradient.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/backend.h"
#include "engine/cpu/attention.h"
#include "engine/cpu/kernels.h"
#include "engine/cpu/parameters.h"

namespace stagewright::cpu {

// What the layers of a stage share.
struct StageContext {
    ModelConfig model;
    int batch = 1;
    int stage = 0;
    Allocator& allocator;
    const Kernels& kernels;

    int rows() const { return batch * model.sequence; }
    std::size_t stream() const { return static_cast<std::size_t>(rows()) * static_cast<std::size_t>(model.hidden); }
    AttentionShape attention() const { return {batch, model.sequence, model.hidden, model.heads}; }
    MemoryTag tag(MemoryCategory category, int microbatch) const
    {
        return {category, static_cast<std::uint16_t>(stage), microbatch};
    }
    Buffer keep(std::size_t floats, int microbatch) const
    {
        return allocator.take(floats, tag(MemoryCategory::Activations, microbatch));
    }
    Buffer borrow(std::size_t floats, int microbatch) const
    {
        return allocator.take(floats, tag(MemoryCategory::Workspace, microbatch));
    }
};

struct LinearParameters { // weight (out, in), bias (out)
    Parameter& weight;
    Parameter& bias;
};
struct NormParameters { // (hidden) each
    Parameter& gamma;
    Parameter& beta;
};

// Token and position tables; x = token[t] + position[i].
class Embedding {
public:
    struct Saved {
        Buffer tokens; // bytes
        Buffer outputGrad;
    };
    Embedding(const StageContext& context, ParameterSet& parameters);
    void forward(Saved& saved, int microbatch, std::span<const std::uint8_t> tokens, float* stream) const;
    void inputGrad(Saved& saved, Buffer outputGrad) const;
    void weightGrad(Saved& saved) const;

private:
    const StageContext& m_context;
    Parameter& m_token;
    Parameter& m_position;
};

class Block {
public:
    struct Saved {
        Buffer normal1, deviation1, qkv, probabilities, attention, normal2, deviation2, hidden;
        Buffer outputGrad, hiddenGrad, middleGrad, qkvGrad, sums;
    };
    Block(const StageContext& context, int layer, ParameterSet& parameters);
    void forward(Saved& saved, int microbatch, float* stream) const; // stream becomes the block's output
    Buffer inputGrad(Saved& saved, int microbatch, Buffer outputGrad) const;
    void weightGrad(Saved& saved, int microbatch) const;

private:
    struct Sums; // the 13·H floats, by name
    const StageContext& m_context;
    NormParameters m_norm1;
    LinearParameters m_qkv;
    LinearParameters m_project;
    NormParameters m_norm2;
    LinearParameters m_expand;
    LinearParameters m_contract;
};

// Final LayerNorm, untied head (vocabulary, hidden) without bias, mean cross-entropy.
class Head {
public:
    struct Saved {
        Buffer normal, deviation;
        Buffer logitsGrad; // softmax − onehot; of the sum over rows, not yet scaled
        Buffer sums;
    };
    Head(const StageContext& context, ParameterSet& parameters);
    double forward(Saved& saved, int microbatch, float* stream, std::span<const std::uint8_t> targets) const; // the loss
    Buffer inputGrad(Saved& saved, int microbatch, float scale) const;
    void weightGrad(Saved& saved, int microbatch, float scale) const;

private:
    const StageContext& m_context;
    NormParameters m_norm;
    Parameter& m_weight;
};

} // namespace stagewright::cpu
