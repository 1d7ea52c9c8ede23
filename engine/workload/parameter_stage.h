// ParameterStage: what stages whose weights are a ParameterSet do alike, whatever they compute.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/layers/parameters.h"
#include "engine/layers/part_timer.h"
#include "engine/workload/workload.h"

namespace stagewright::layers {

// Those derived from it compute, and keep what their backwards need; they lap m_timer and set m_losses.
class ParameterStage : public StageModel {
public:
    const StageSlice& slice() const override { return m_slice; }
    double loss(const Part& part) const override;
    void setLossScale(float scale) override { m_lossScale = scale; }
    void zeroGradients() override { m_parameters.zeroGradients(); }
    double gradientSquareSum() const override;
    void optimizerStep(const OptimizerConfig& config, int step, float gradientScale) override;
    void undoOptimizerStep(const OptimizerConfig& config, int step, float gradientScale) override;
    void keepVersion(int version) override { m_parameters.keepVersion(version); }
    void useVersion(int version) override { m_parameters.useVersion(version); }
    void dropVersion(int version) override { m_parameters.dropVersion(version); }
    void keepPredicted(int version, const OptimizerConfig& config, int step, double updates) override;
    std::vector<ParameterView> parameters() override { return m_parameters.views(); }
    void parametersWritten() override { m_parameters.written(); }
    void saveState(int delayed, const StateSink& sink) override { m_parameters.saveState(delayed, sink); }
    void loadState(int delayed, const StateSource& source) override { m_parameters.loadState(delayed, source); }
    SharedState* shared() override { return m_parameters.shared(); }
    double gradientSquareSumOn(std::int64_t begin, std::int64_t end) const override
    {
        return m_parameters.gradientSquareSumOn(begin, end);
    }
    void optimizerStepOn(const OptimizerConfig& config, int step, float gradientScale, std::int64_t begin,
                         std::int64_t end) override
    {
        m_parameters.stepOn(config, step, gradientScale, begin, end);
    }
    void gatherWeights() override { m_parameters.gatherWeights(); }
    void releaseWeights() override { m_parameters.releaseWeights(); }
    void packGradients(const Buffer& to) override { m_parameters.packGradients(to.data()); }
    void sumGradients(std::span<const Buffer> copies) override;
    void timeParts(bool on, bool cpu) override;
    void settlePartTimes() override { m_timer.settle(); }
    std::vector<LayerCosts> partTimes() const override;

protected:
    // Throws std::bad_alloc where the weights do not fit. The arithmetic works in the allocator's memory.
    ParameterStage(const StageSpec& stage, Allocator& allocator, std::unique_ptr<LayerMath> math);

    std::string nameOf(const Part& part) const; // "stage 1, microbatch 3, slice 0"

    Allocator& m_allocator;
    std::unique_ptr<LayerMath> m_math;
    StageSlice m_slice;
    ParameterSet m_parameters;
    float m_lossScale = 1;
    PartTimer m_timer; // part 0: what comes before the blocks, there or not; 1 …: blocks; last: the head
    std::map<Part, LossCell> m_losses; // a device's are fetched on request
};

} // namespace stagewright::layers
