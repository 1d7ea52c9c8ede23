// Helpers of the engine's tests: a small model cut into stages, driven microbatch by microbatch on one thread.
#pragma once

#include <memory>
#include <vector>

#include "engine/backend.h"
#include "engine/corpus.h"
#include "engine/model_config.h"

namespace stagewright::test {

inline constexpr OptimizerConfig defaultOptimizer{};

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

    Rig(const ModelConfig& config, int microbatchSize, int stageCount, const OptimizerConfig& optimizer = defaultOptimizer,
        const std::vector<int>& stageLayers = {})
        : model(config), batch(microbatchSize), backend(std::move(*makeBackend("cpu")))
    {
        const auto slices = *sliceModel(model, stageCount, stageLayers);
        for (const StageSlice& slice : slices) {
            allocators.push_back(std::make_unique<Allocator>());
            stages.push_back(std::move(*backend->makeStage(model, slice, batch, seed, optimizer, *allocators.back())));
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
        corpus->sample(seed, step, microbatch, batch, model.sequence, tokens, targets);
        for (auto* bytes : {&tokens, &targets})
            for (std::uint8_t& byte : *bytes)
                byte = static_cast<std::uint8_t>(byte % model.vocabulary);
    }
    double forward(int step, int microbatch)
    {
        draw(step, microbatch);
        Buffer stream;
        for (std::size_t s = 0; s < stages.size(); ++s)
            stream = stages[s]->forward(microbatch, copyTo(s, stream, microbatch), tokens, targets);
        return stages.back()->loss(microbatch);
    }
    void inputGrads(int microbatch)
    {
        Buffer grad;
        for (std::size_t s = stages.size(); s-- > 0;)
            grad = stages[s]->inputGrad(microbatch, copyTo(s, grad, microbatch));
    }
    void weightGrads(int microbatch)
    {
        for (auto& stage : stages)
            stage->weightGrad(microbatch);
    }
    std::vector<ParameterView> parameters()
    {
        std::vector<ParameterView> all;
        for (auto& stage : stages)
            for (ParameterView& view : stage->parameters())
                all.push_back(std::move(view));
        return all;
    }
    std::vector<float> gradients()
    {
        std::vector<float> all;
        for (const ParameterView& view : parameters())
            all.insert(all.end(), view.gradient.begin(), view.gradient.end());
        return all;
    }
};

} // namespace stagewright::test
