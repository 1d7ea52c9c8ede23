// The first workload: a GPT-style decoder, trained on bytes.
#pragma once

#include "engine/workload/gpt/corpus.h"
#include "engine/workload/gpt/model_config.h"
#include "engine/workload/workload.h"

namespace stagewright {

// docs/model.md. A position is a token; its data and its target are bytes.
class Gpt : public Workload {
public:
    // corpus: null: the built-in text.
    explicit Gpt(const ModelConfig& config, std::shared_ptr<const Corpus> corpus = nullptr);
    const ModelConfig& config() const { return m_config; }

    std::string_view name() const override { return "gpt"; }
    std::string text() const override { return toText(m_config); }
    std::vector<std::pair<std::string, int>> shape() const override;
    int layers() const override { return m_config.layers; }
    int width() const override { return m_config.hidden; }
    int positions() const override { return m_config.sequence; }
    std::shared_ptr<const Workload> withLayers(int layers) const override;

    void sample(std::uint64_t seed, int step, std::int64_t first, int samples, std::span<std::uint8_t> tokens,
                std::span<std::uint8_t> targets) const override;
    std::string dataName() const override { return m_corpus->name(); }
    std::span<const std::uint8_t> data() const override { return m_corpus->bytes(); }
    Result<std::shared_ptr<const Workload>> withData(const std::string& path) const override;

    double forwardCost(LayerCosts::Part part) const override;
    double flops(OpKind kind, const StageSlice& slice, int microbatchSize) const override;
    std::vector<std::int64_t> layerElements(const StageSlice& slice) const override;
    StageMemory memoryOf(const StageSlice& slice, int microbatchSize, const OptimizerConfig& optimizer = {},
                         const StageLayout& layout = {}) const override;

    Result<void> check(const Capabilities& device, bool shared) const override;
    MathUse mathUse(int microbatchSize) const override;
    std::unique_ptr<StageModel> makeStage(const StageSpec& stage, Allocator& allocator,
                                          std::unique_ptr<layers::LayerMath> math) const override;
    bool runsInTorch() const override { return true; }
    int layerOf(const std::string& parameter) const override;

    // At most four samples; heads, width and sequence are cut until a microbatch needs no more than 200 million
    // multiplications.
    std::optional<DoubleForm> doubleForm(int microbatchSize) const override;
    std::unique_ptr<TimedKernels> kernels(layers::LayerMath& math, Allocator& allocator,
                                          int microbatchSize) const override;

private:
    ModelConfig m_config;
    std::shared_ptr<const Corpus> m_corpus;
};

} // namespace stagewright
