#include "engine/workload/configured_model.h"

#include "engine/workload/gpt/stage_memory.h"
#include "schedules/base/text.h"
#include "schedules/model/analytic_costs.h"

namespace stagewright {

std::vector<int> ConfiguredModel::layersFor(int stages) const
{
    std::vector<int> layers;
    if (auto slices = sliceModel(model, stages))
        for (const StageSlice& slice : *slices) layers.push_back(slice.layerCount);
    return layers;
}

std::vector<StageMemory> ConfiguredModel::memoryOf(const std::vector<int>& layersByStage) const
{
    std::vector<StageMemory> memory;
    if (auto slices = sliceModel(model, static_cast<int>(layersByStage.size()), layersByStage))
        for (const StageSlice& slice : *slices)
            memory.push_back(
                stageMemoryOf(model, slice, microbatchSize, optimizer, traitsOf(backend).layout(precision)));
    return memory;
}

std::vector<double> ConfiguredModel::inputShares(const std::vector<int>& layersByStage) const
{
    std::vector<double> shares;
    for (std::size_t stage = 0; stage < layersByStage.size(); ++stage) {
        const StageShape shape{static_cast<double>(layersByStage[stage]), stage + 1 == layersByStage.size(),
                               static_cast<double>(model.hidden),         static_cast<double>(model.sequence),
                               static_cast<double>(model.vocabulary),     static_cast<double>(microbatchSize)};
        const double whole = stageFlops(OpKind::Backward, shape);
        shares.push_back(whole > 0 ? stageFlops(OpKind::InputGrad, shape) / whole : 0.5);
    }
    return shares;
}

std::optional<ConfiguredModel> configuredModel(const std::vector<std::pair<std::string, std::string>>& configuration)
{
    ConfiguredModel out;
    bool known = false;
    for (const auto& [key, value] : configuration) {
        if (key == "model") {
            auto model = parseModelConfig(value);
            if (!model) return std::nullopt;
            out.model = *model;
            known = true;
        }
        if (key == "microbatch_size")
            if (const auto samples = wholeOf<int>(value); samples && *samples > 0) out.microbatchSize = *samples;
        if (key == "stage_layers") out.stageLayers = wholesOf(value).value_or(std::vector<int>());
        if (key == "backend") out.backend = value;
        for (const Precision precision : {Precision::Fp32, Precision::Tf32, Precision::Bf16})
            if (key == "precision" && value == toText(precision)) out.precision = precision;
        if (key == "optimizer" && value.starts_with("sgd")) {
            out.optimizer.kind = OptimizerKind::Sgd;
            out.optimizer.momentum = value.find("momentum 0,") == std::string::npos ? 0.9 : 0.0; // whether there is any
        }
    }
    if (!known) return std::nullopt;
    return out;
}

} // namespace stagewright
