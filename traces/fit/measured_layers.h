// The layers of a recorded run's model, with what each takes, for planners that divide them. Pure.
#pragma once

#include <string>
#include <vector>

#include "schedules/layout/partition.h"
#include "traces/run/run.h"

namespace stagewright {

struct MeasuredLayers {
    PartitionProblem problem; // embedding, blocks, loss; the run's link; what an op takes beyond its layers
    // How far the sums over the layers of each stage are from its ops as they were measured, of the stages that were.
    double meanError = 0, largestError = 0;
    double byLayers = 0;              // the part of the ops' time that is in layers, not in what each op takes besides
    std::vector<std::string> unknown; // sentences
};
// Usage says why there are none: the run does not have times of its layers, or a layer has no forward or no backward.
Result<MeasuredLayers> measuredLayersOf(const Run& run);

} // namespace stagewright
