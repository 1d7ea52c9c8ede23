// What a recorded run trained, from the run's configuration, and what its shape says of stages.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/workload/workload.h"

namespace stagewright {

struct ConfiguredModel {
    std::shared_ptr<const Workload> workload;
    int microbatchSize = 1;
    std::vector<int> stageLayers; // of the run
    std::string backend;
    Precision precision = Precision::Default;
    OptimizerConfig optimizer; // its kind and momentum

    // Layers of each stage as a recording would split them; empty where it could not.
    std::vector<int> layersFor(int stages) const;
    // Workload::memoryOf(); empty where they do not fit
    std::vector<StageMemory> memoryOf(const std::vector<int>& layersByStage) const;
    // The input gradient's share of the floating-point operations of a full backward, by stage.
    std::vector<double> inputShares(const std::vector<int>& layersByStage) const;
};

// None where the configuration does not describe one of our workloads.
std::optional<ConfiguredModel> configuredModel(const std::vector<std::pair<std::string, std::string>>& configuration);

} // namespace stagewright
