#include "engine/workload/parameter_stage.h"

#include <stdexcept>
#include <utility>

#include "engine/layers/denormals.h"

namespace stagewright::layers {

ParameterStage::ParameterStage(const StageSpec& stage, Allocator& allocator, std::unique_ptr<LayerMath> math)
    : m_allocator(allocator), m_math(std::move(math)), m_slice(stage.slice),
      m_parameters(m_slice.stage, stage.seed, stage.optimizer, allocator, *m_math, stage.share)
{
}

std::string ParameterStage::nameOf(const Part& part) const
{
    std::string name = "stage " + std::to_string(m_slice.stage) + ", microbatch " + std::to_string(part.microbatch);
    if (part.slice >= 0) name += ", slice " + std::to_string(part.slice);
    if (part.half != 0) name += ", half " + std::to_string(part.half);
    return name;
}

void ParameterStage::timeParts(bool on, bool cpu)
{
    if (on)
        m_timer.start(m_allocator.memory().clock(), cpu, static_cast<std::size_t>(m_slice.layerCount) + 2);
    else
        m_timer.stop();
}

std::vector<LayerCosts> ParameterStage::partTimes() const
{
    const auto medians = m_timer.medians();
    std::vector<LayerCosts> out;
    const auto add = [&](LayerCosts::Part part, std::size_t at) {
        LayerCosts costs;
        costs.part = part;
        if (at < medians.size()) costs.duration = medians[at];
        out.push_back(costs);
    };
    const auto blocks = static_cast<std::size_t>(m_slice.layerCount);
    if (m_slice.first) add(LayerCosts::Part::Embedding, 0);
    for (std::size_t i = 0; i < blocks; ++i) add(LayerCosts::Part::Block, 1 + i);
    if (m_slice.last) add(LayerCosts::Part::Head, 1 + blocks);
    return out;
}

double ParameterStage::gradientSquareSum() const
{
    const FlushDenormals flush;
    return m_parameters.gradientSquareSum();
}

void ParameterStage::optimizerStep(const OptimizerConfig& config, int step, float gradientScale)
{
    const FlushDenormals flush;
    m_parameters.step(config, step, gradientScale);
}

void ParameterStage::undoOptimizerStep(const OptimizerConfig& config, int step, float gradientScale)
{
    const FlushDenormals flush;
    m_parameters.undoStep(config, step, gradientScale);
}

void ParameterStage::keepPredicted(int version, const OptimizerConfig& config, int step, double updates)
{
    const FlushDenormals flush;
    m_parameters.keepPredicted(version, config, step, updates);
}

double ParameterStage::loss(const Part& part) const
{
    const auto found = m_losses.find(part);
    if (found == m_losses.end()) throw std::logic_error(nameOf(part) + ": no loss without a forward on the last stage");
    return m_math->loss(found->second);
}

void ParameterStage::sumGradients(std::span<const Buffer> copies)
{
    std::vector<const float*> from;
    for (const Buffer& copy : copies) from.push_back(copy.data());
    m_parameters.sumGradients(from);
}

} // namespace stagewright::layers
