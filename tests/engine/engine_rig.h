// Helpers of the engine's tests: a small model cut into stages, driven part by part on one thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <vector>

#include "engine/workload/workload.h"
#include "support/workloads.h"

namespace stagewright::test {

inline constexpr OptimizerConfig defaultOptimizer{};

// Bytes in use by category and microbatch.
struct Tally final : MemorySink {
    std::map<std::pair<MemoryCategory, int>, Bytes> inUse;
    Bytes total = 0;
    Bytes peak = 0;
    void memoryChanged(const MemoryTag& tag, Bytes delta) override
    {
        inUse[{tag.category, tag.microbatch}] += delta;
        total += delta;
        peak = std::max(peak, total);
    }
    Bytes of(MemoryCategory category, int microbatch) { return inUse[{category, microbatch}]; }
};

inline bool sameBits(std::span<const float> a, std::span<const float> b)
{
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// ‖a − b‖ / ‖b‖; 0 where both are 0.
inline double distance(std::span<const float> a, std::span<const float> b)
{
    double square = 0, apart = 0;
    for (std::size_t i = 0; i < b.size(); ++i) {
        square += static_cast<double>(b[i]) * b[i];
        apart += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
    }
    return apart == 0 ? 0.0 : std::sqrt(apart / square);
}

// Stages of one model over one allocator each, as ranks would hold them.
struct Rig {
    ModelConfig model;
    int batch;
    std::uint64_t seed = 7;
    std::unique_ptr<Backend> backend;
    std::vector<std::unique_ptr<Allocator>> allocators;
    std::vector<std::unique_ptr<StageModel>> stages;
    std::shared_ptr<const Corpus> corpus = Corpus::builtIn();
    std::vector<std::uint8_t> tokens, targets;
    std::vector<int> lengths; // of slices

    Rig(const ModelConfig& config, int microbatchSize, int stageCount,
        const OptimizerConfig& optimizer = defaultOptimizer, const std::vector<int>& stageLayers = {})
        : model(config), batch(microbatchSize), backend(std::move(*makeBackend("cpu")))
    {
        const auto workload = gpt(model);
        const auto slices = *slicesOf(*workload, stageCount, stageLayers);
        for (const StageSlice& slice : slices) {
            allocators.push_back(std::make_unique<Allocator>());
            stages.push_back(
                std::move(*makeStage(*workload, *backend, {slice, batch, seed, optimizer}, *allocators.back())));
        }
        tokens.resize(static_cast<std::size_t>(batch * model.sequence));
        targets.resize(tokens.size());
    }

    // The hand-over between ranks: a copy under the receiver's allocator.
    Buffer copyTo(std::size_t stage, const Buffer& from, int microbatch)
    {
        if (!from) return {};
        Buffer to = allocators[stage]->take(
            from.size(), {MemoryCategory::Communication, static_cast<std::uint16_t>(stage), microbatch});
        std::copy_n(from.data(), from.size(), to.data());
        return to;
    }
    void draw(int step, int microbatch)
    {
        corpus->sample(seed, step, std::int64_t{microbatch} * batch, batch, model.sequence, tokens, targets);
        for (auto* bytes : {&tokens, &targets})
            for (std::uint8_t& byte : *bytes) byte = static_cast<std::uint8_t>(byte % model.vocabulary);
    }
    void setSlices(const std::vector<int>& someLengths)
    {
        lengths = someLengths;
        for (auto& stage : stages) stage->setSlices(lengths);
    }
    // The part's bytes, (batch, tokens) of the part.
    std::vector<std::uint8_t> cut(const std::vector<std::uint8_t>& bytes, const Part& part) const
    {
        const int past = part.slice < 0 ? 0 : std::accumulate(lengths.begin(), lengths.begin() + part.slice, 0);
        const int count = part.slice < 0 ? model.sequence : lengths[static_cast<std::size_t>(part.slice)];
        const int first = part.half == 2 ? batch / 2 : 0;
        const int end = part.half == 1 ? batch / 2 : batch;
        std::vector<std::uint8_t> out;
        for (int sample = first; sample < end; ++sample) {
            const auto from = bytes.begin() + sample * model.sequence + past;
            out.insert(out.end(), from, from + count);
        }
        return out;
    }
    using Forward = Buffer (StageModel::*)(const Part&, Buffer, std::span<const std::uint8_t>,
                                           std::span<const std::uint8_t>);
    double forwardPart(int step, const Part& part, Forward how = &StageModel::forward)
    {
        draw(step, part.microbatch);
        const auto someTokens = cut(tokens, part), someTargets = cut(targets, part);
        Buffer stream;
        for (std::size_t s = 0; s < stages.size(); ++s)
            stream = ((*stages[s]).*how)(part, copyTo(s, stream, part.microbatch), someTokens, someTargets);
        return stages.back()->loss(part);
    }
    void recompute(const Part& part)
    {
        for (auto& stage : stages) stage->recompute(part);
    }
    void inputGradPart(const Part& part)
    {
        Buffer grad;
        for (std::size_t s = stages.size(); s-- > 0;)
            grad = stages[s]->inputGrad(part, copyTo(s, grad, part.microbatch));
    }
    // A whole microbatch, slice by slice where there are slices. The loss is that of the microbatch.
    std::vector<Part> partsOf(int microbatch) const
    {
        std::vector<Part> parts;
        for (std::size_t i = 0; i < lengths.size(); ++i)
            parts.emplace_back(microbatch, static_cast<std::int16_t>(i), std::uint8_t{0});
        if (parts.empty()) parts.emplace_back(microbatch);
        return parts;
    }
    double forward(int step, int microbatch, Forward how = &StageModel::forward)
    {
        if (lengths.empty()) return forwardPart(step, microbatch, how);
        double sum = 0;
        for (const Part& part : partsOf(microbatch))
            sum += forwardPart(step, part, how) * lengths[static_cast<std::size_t>(part.slice)];
        return sum / model.sequence;
    }
    void inputGrads(int microbatch)
    {
        const std::vector<Part> parts = partsOf(microbatch);
        for (auto part = parts.rbegin(); part != parts.rend(); ++part) inputGradPart(*part);
    }
    void weightGrads(int microbatch)
    {
        for (const Part& part : partsOf(microbatch)) weightGradPart(part);
    }
    void weightGradPart(const Part& part)
    {
        for (auto& stage : stages) stage->weightGrad(part);
    }
    void zeroGradients()
    {
        for (auto& stage : stages) stage->zeroGradients();
    }
    std::vector<ParameterView> parameters()
    {
        std::vector<ParameterView> all;
        for (auto& stage : stages)
            for (ParameterView& view : stage->parameters()) all.push_back(std::move(view));
        return all;
    }
    std::vector<float> gradients()
    {
        std::vector<float> all;
        for (const ParameterView& view : parameters())
            all.insert(all.end(), view.gradient.begin(), view.gradient.end());
        return all;
    }
    Bytes inUse(MemoryCategory category) const
    {
        Bytes sum = 0;
        for (const auto& allocator : allocators) sum += allocator->inUse(category);
        return sum;
    }
};

// The largest relative distance of a tensor's gradient from the expected one (all tensors, one after another), and its
// name.
inline std::pair<double, std::string> farthestGradient(Rig& rig, std::span<const float> expected)
{
    std::pair<double, std::string> farthest{0.0, "none"};
    std::size_t at = 0;
    for (const ParameterView& view : rig.parameters()) {
        const double apart = distance(view.gradient, expected.subspan(at, view.gradient.size()));
        if (!(apart <= farthest.first)) farthest = {apart, view.name};
        at += view.gradient.size();
    }
    return farthest;
}

} // namespace stagewright::test
