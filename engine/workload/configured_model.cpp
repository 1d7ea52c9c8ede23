#include "engine/workload/configured_model.h"

#include "schedules/base/text.h"

namespace stagewright {

std::vector<int> ConfiguredModel::layersFor(int stages) const
{
    return layersOfStages(*workload, stages).value_or(std::vector<int>());
}

std::vector<StageMemory> ConfiguredModel::memoryOf(const std::vector<int>& layersByStage) const
{
    std::vector<StageMemory> memory;
    if (auto slices = slicesOf(*workload, static_cast<int>(layersByStage.size()), layersByStage))
        for (const StageSlice& slice : *slices)
            memory.push_back(workload->memoryOf(slice, microbatchSize, optimizer, traitsOf(backend).layout(precision)));
    return memory;
}

std::vector<double> ConfiguredModel::inputShares(const std::vector<int>& layersByStage) const
{
    std::vector<double> shares;
    StageSlice slice;
    for (const int layers : layersByStage) {
        slice.layerCount = layers;
        slice.first = slice.stage == 0;
        slice.last = slice.stage + 1 == static_cast<int>(layersByStage.size());
        const double whole = workload->flops(OpKind::Backward, slice, microbatchSize);
        shares.push_back(whole > 0 ? workload->flops(OpKind::InputGrad, slice, microbatchSize) / whole : 0.5);
        ++slice.stage;
        slice.firstLayer += layers;
    }
    return shares;
}

std::optional<ConfiguredModel> configuredModel(const std::vector<std::pair<std::string, std::string>>& configuration)
{
    ConfiguredModel out;
    for (const auto& [key, value] : configuration) {
        if (key == "model") {
            auto workload = parseWorkload(value);
            if (!workload) return std::nullopt;
            out.workload = std::move(*workload);
        }
        if (key == "microbatch_size")
            if (const auto samples = wholeOf<int>(value); samples && *samples > 0) out.microbatchSize = *samples;
        if (key == "stage_layers") out.stageLayers = wholesOf(value).value_or(std::vector<int>());
        if (key == "backend") out.backend = value;
        for (const Precision precision : {Precision::Fp32, Precision::Tf32, Precision::Bf16})
            if (key == "precision" && value == toText(precision)) out.precision = precision;
        if (key == "optimizer" && (value.starts_with("sgd") || value.starts_with("kfac"))) {
            out.optimizer.kind = value.starts_with("sgd") ? OptimizerKind::Sgd : OptimizerKind::Kfac;
            out.optimizer.momentum = value.find("momentum 0,") == std::string::npos ? 0.9 : 0.0; // whether there is any
        }
    }
    if (!out.workload) return std::nullopt;
    return out;
}

} // namespace stagewright
