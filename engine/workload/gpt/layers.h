// The layers of a decoder: embedding, block, head. Each has forward, input gradient and weight gradient apart and
// keeps, by part of a microbatch, only what the calls to come need. M = batch × tokens rows of the part, H = hidden.
//
// The residual stream is one buffer (M, H) that the blocks change in place: none of it is kept. What a block keeps, in
// units of M·H elements (P: what attention keeps, on the CPU its probabilities, about heads · keys / 2 per row; tags in
// brackets):
//   after forward      normal1 1, qkv 3, P, attention 1, normal2 1, pre-activation 4 [Activations]         = 10 + P
//   after inputGrad    normal1 1, attention 1, normal2 1, activation 4,
//                      and gradients: output 1, hidden 4, middle 1, qkv 3 [Activations]                     = 16
//   dropped            nothing; a slice that others follow: its keys and values, 2 [Activations]; all of the above
//                      passes by as [Workspace]
// The sums over rows that give bias and LayerNorm gradients fall out of inputGrad's passes; they are kept as 13·H
// floats and added to the accumulators by weightGrad like every other weight gradient.
//
// Slices: a slice's queries see the keys of the earlier slices where those keep them, so nothing is copied. Its input
// gradient adds to the key and value gradients of the earlier slices: the last slice's inputGrad takes qkv gradients
// (3) for all of them. A slice's keys and values are free after its own inputGrad, which comes after those of the later
// ones.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "engine/device/math.h"
#include "engine/layers/parameters.h"
#include "engine/workload/gpt/model_config.h"

namespace stagewright::layers {

inline constexpr float initialDeviation = 0.02F; // of the normal deviates that weights start with

// A part of a microbatch: batch × tokens rows, the tokens of its earlier slices before them.
struct PartShape {
    std::int32_t microbatch = 0; // of memory tags
    int batch = 1;
    int tokens = 1;
    int past = 0;          // tokens of the earlier slices
    bool followed = false; // later slices will ask for keys and values

    int rows() const { return batch * tokens; }
};

enum class Forward {
    Keep,              // what the input gradient needs
    KeepWithoutOutput, // the same; the stream is left unfinished
    Drop               // only what later slices need
};

// What the layers of a stage share.
struct StageContext {
    ModelConfig model;
    int batch = 1; // of a whole microbatch
    int stage = 0;
    Allocator& allocator;
    LayerMath& math;

    int microbatchRows() const { return batch * model.sequence; }
    std::size_t stream(const PartShape& part) const
    {
        return static_cast<std::size_t>(part.rows()) * static_cast<std::size_t>(model.hidden);
    }
    MemoryTag tag(MemoryCategory category, int microbatch) const
    {
        return {category, static_cast<std::uint16_t>(stage), microbatch};
    }
    // Room for so many elements, or floats.
    Buffer keep(std::size_t elements, int microbatch) const { return keepFloats(math.words(elements), microbatch); }
    Buffer borrow(std::size_t elements, int microbatch) const { return borrowFloats(math.words(elements), microbatch); }
    Buffer keepFloats(std::size_t floats, int microbatch) const
    {
        return allocator.take(floats, tag(MemoryCategory::Activations, microbatch));
    }
    Buffer borrowFloats(std::size_t floats, int microbatch) const
    {
        return allocator.take(floats, tag(MemoryCategory::Workspace, microbatch));
    }
    // The host's bytes in a buffer.
    Buffer bytes(std::span<const std::uint8_t> host, MemoryCategory category, int microbatch) const;
};

struct LinearParameters { // weight (out, in), bias (out)
    Parameter& weight;
    Parameter& bias;
};
struct NormParameters { // (hidden) each
    Parameter& gamma;
    Parameter& beta;
};

// A layer's state of a part, for the weight gradient over several parts: (shape, saved).
template <typename Saved>
struct Pending {
    PartShape shape;
    Saved* saved;
};

// Token and position tables; x = token[t] + position[i].
class Embedding {
public:
    struct Saved {
        Buffer tokens; // bytes
        Buffer outputGrad;
    };
    Embedding(const StageContext& context, ParameterSet& parameters);
    // Throws, before anything is changed, where there are too few or one is not in the vocabulary.
    static void check(std::span<const std::uint8_t> tokens, const PartShape& part, int vocabulary, const char* what);
    void keepTokens(Saved& saved, const PartShape& part, std::span<const std::uint8_t> tokens) const;
    void forward(const Saved& saved, const PartShape& part, Elements stream) const;
    void weightGrad(Saved& saved, const PartShape& part) const;

private:
    const StageContext& m_context;
    Parameter& m_token;
    Parameter& m_position;
};

class Block {
public:
    struct Saved {
        Buffer normal1, deviation1, qkv, probabilities, attention, normal2, deviation2, hidden;
        Buffer keyValue; // (rows, 2 · hidden), of a dropped slice
        Buffer outputGrad, hiddenGrad, middleGrad, qkvGrad, sums;
    };
    // What K-FAC's factors of a part are summed from, product by product; taken ones are empty.
    struct FactorRows {
        std::array<Buffer, 4> inputs, gradients;
    };
    using Earlier = std::span<const Pending<Saved>>; // this block's earlier slices of the same microbatch, in order
    Block(const StageContext& context, int layer, ParameterSet& parameters);
    void forward(Saved& saved, const PartShape& part, Earlier earlier, Elements stream, Forward how) const;
    Buffer inputGrad(Saved& saved, const PartShape& part, Earlier earlier, Buffer outputGrad) const;
    // Rows of several parts are stacked in workspace, so that each matrix takes one GEMM; a single part is not
    // copied.
    // meanRows: the rows that gradients are a mean over, as K-FAC wants to know.
    // keeps: what of a single part stays there for addFactors(), of inputs and of gradients; null: nothing.
    void weightGrad(std::span<const Pending<Saved>> parts, double meanRows, FactorRows* keeps = nullptr,
                    bool inputs = false, bool gradients = false) const;
    // To the sums of a refresh (0 or 1): the part's inputs, else its gradients, of what weightGrad() kept, which is
    // then free; or of what lies there before it. back: behind the input gradient.
    void addFactors(FactorRows& rows, const PartShape& part, bool inputs, double meanRows, int refresh) const;
    void addFactors(const Saved& saved, const PartShape& part, bool inputs, bool back, double meanRows,
                    int refresh) const;

private:
    struct Sums; // the 13·H floats, by name
    std::array<const LinearParameters*, 4> products() const { return {&m_contract, &m_expand, &m_project, &m_qkv}; }
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
        Buffer targets;    // bytes; where it was dropped
        Buffer sums;
    };
    Head(const StageContext& context, ParameterSet& parameters);
    // The cell is to hold the mean loss over the part's rows. targets: bytes in the device's memory. Keep or Drop.
    void forward(Saved& saved, const PartShape& part, Elements stream, const std::uint8_t* targets, Forward how,
                 LossCell& loss) const;
    // scale / rows of a whole microbatch multiplies every gradient.
    Buffer inputGrad(Saved& saved, const PartShape& part, float scale) const;
    void weightGrad(std::span<const Pending<Saved>> parts, float scale) const;

private:
    const StageContext& m_context;
    NormParameters m_norm;
    Parameter& m_weight;
};

} // namespace stagewright::layers
