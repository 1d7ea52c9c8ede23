// The layers of one stage on the CPU.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "engine/backend.h"
#include "engine/cpu/layers.h"

namespace stagewright::cpu {

class CpuStage final : public StageModel {
public:
    // Throws std::bad_alloc where the weights do not fit.
    CpuStage(const ModelConfig& model, const StageSlice& slice, int microbatchSize, std::uint64_t seed,
             const OptimizerConfig& optimizer, Allocator& allocator);

    const StageSlice& slice() const override { return m_slice; }
    Buffer forward(const Part& part, Buffer input, std::span<const std::uint8_t> tokens,
                   std::span<const std::uint8_t> targets) override;
    Buffer forwardForRecompute(const Part& part, Buffer input, std::span<const std::uint8_t> tokens,
                               std::span<const std::uint8_t> targets) override;
    void recompute(const Part& part) override;
    Buffer inputGrad(const Part& part, Buffer outputGrad) override;
    void weightGrad(const Part& part) override;
    void weightGradOver(std::span<const Part> parts) override;
    void setSlices(std::span<const int> lengths) override;
    void setRecomputedLayers(int first, int last) override;
    double loss(const Part& part) const override;
    void setLossScale(float scale) override { m_lossScale = scale; }
    void zeroGradients() override { m_parameters.zeroGradients(); }
    double gradientSquareSum() const override;
    void optimizerStep(const OptimizerConfig& config, int step, float gradientScale) override;
    void undoOptimizerStep(const OptimizerConfig& config, int step, float gradientScale) override;
    void keepVersion(int version) override;
    void useVersion(int version) override;
    void dropVersion(int version) override;
    void keepPredicted(int version, const OptimizerConfig& config, int step, double updates) override;
    std::vector<ParameterView> parameters() override { return m_parameters.views(); }
    void dropMicrobatches() override { m_kept.clear(); }

private:
    enum class Awaits { InputGrad, WeightGrad };
    struct Kept {
        Awaits awaits = Awaits::InputGrad;
        Embedding::Saved embedding;
        std::vector<Block::Saved> blocks;
        Head::Saved head;
    };
    Kept& kept(int microbatch, Awaits awaits);

    StageContext m_context;
    StageSlice m_slice;
    ParameterSet m_parameters;
    std::optional<Embedding> m_embedding;
    std::vector<Block> m_blocks;
    std::optional<Head> m_head;
    float m_lossScale = 1;
    std::map<int, Kept> m_kept; // by microbatch
    std::map<int, double> m_losses;
};

} // namespace stagewright::cpu
