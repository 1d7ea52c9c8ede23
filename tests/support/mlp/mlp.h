// A second workload, for tests: a small MLP that sorts synthetic samples into classes. It shares nothing with the GPT
// but what any workload has.
//
// A sample has one position: `features` bytes and the class that they belong to. x = features · Aᵀ; each layer makes
// x = gelu(x · Uᵀ + b) · Dᵀ with a hidden width of 2 · width; the loss is the cross-entropy of x · Hᵀ. Whole
// microbatches only: no slices, no halves, no partial backward; recomputation is of all layers of a stage.
#pragma once

#include "engine/workload/workload.h"

namespace stagewright::test {

class Mlp final : public Workload {
public:
    static constexpr int features = 8;
    static constexpr int classes = 16;

    Mlp(int layers, int width) : m_layers(layers), m_width(width) {}

    std::string_view name() const override { return "mlp"; }
    std::string text() const override;
    std::vector<std::pair<std::string, int>> shape() const override;
    int layers() const override { return m_layers; }
    int width() const override { return m_width; }
    int positions() const override { return 1; }
    std::shared_ptr<const Workload> withLayers(int layers) const override;

    int tokenBytes() const override { return features; }
    void sample(std::uint64_t seed, int step, std::int64_t first, int samples, std::span<std::uint8_t> tokens,
                std::span<std::uint8_t> targets) const override;
    std::string dataName() const override { return "synthetic"; }
    std::span<const std::uint8_t> data() const override { return {}; }
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
    int layerOf(const std::string& parameter) const override;

private:
    int hidden() const { return 2 * m_width; }

    int m_layers;
    int m_width;
};

} // namespace stagewright::test
