// The layers of a recorded run's model, with what each takes, for planners that divide them. Pure.
#pragma once

#include <string>
#include <vector>

#include "schedules/layout/parallelism.h"
#include "schedules/layout/partition.h"
#include "traces/run/run.h"

namespace stagewright {

struct MeasuredLayers {
    PartitionProblem problem; // embedding, blocks, loss; the run's link; what an op takes beyond its layers
    // How far the sums over the layers of each stage are from its ops as they were measured, of the stages that were.
    double meanError = 0, largestError = 0;
    double byLayers = 0;              // the part of the ops' time that is in layers, not in what each op takes besides
    std::vector<double> kept;         // by layer: bytes of a microbatch, its share of the stage's; below 0: unknown
    std::vector<std::string> unknown; // sentences
};
// Usage says why there are none: the run does not have times of its layers, or a layer has no forward or no backward.
Result<MeasuredLayers> measuredLayersOf(const Run& run);

// Constants that have the ratios of a run's layers to the formulas, for the run's model with any number of layers, and in
// words which layers are measured and what stays analytic. Usage: the run has no layers, or is of another model.
struct MeasuredConstants {
    StepConstants constants;
    std::string words;
};
Result<MeasuredConstants> measuredConstants(const Run& run, const ModelPreset& model, const Cluster& cluster,
                                            StepConstants constants);

} // namespace stagewright
