// Costs by layer: what ops take on other stages than those that were measured, from what the model's parts take
// (CostModel::layers).
#pragma once

#include <span>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"

namespace stagewright {

int blocksOf(const std::vector<LayerCosts>& layers);

// Forward, input and weight gradient; of a full backward, where only that is known, half each.
struct PassTimes {
    Nanos forward = 0, input = 0, weight = 0;
    bool halved = false;
};
PassTimes passTimesOf(const LayerCosts& part);
PassTimes passTimesOf(const CostModel& costs, int stage);

// Gives costs the layers they were measured with: parts without PerOp, which becomes what an op takes beyond its parts
// (of all stages the median, at least 0). blocksByStage: of the run. Nothing where a part has no forward time or the
// blocks are not the parts'.
void setLayers(CostModel& costs, std::vector<LayerCosts> parts, std::span<const int> blocksByStage);

// Contiguous, so that the stage that takes longest takes least; every stage but the first and the last has a block.
// Empty: there are more stages than that allows.
std::vector<int> balancedBlocks(const std::vector<LayerCosts>& layers, int stages);

// The costs of another number of stages or another split: durations and memory of each stage from its parts, an
// optimizer step by its weights, launch delays the median where the ranks are others, links and jitter kept, overrides
// of links where the ranks are the same. What ranks, microbatches and pairs differ in belongs to the stages that were
// measured and is dropped. blocksByStage empty: balanced. Usage error without layers, or where the blocks do not come
// to the model's.
Result<CostModel> costsByLayer(const CostModel& measured, const Schedule& schedule,
                               std::span<const int> blocksByStage = {});

} // namespace stagewright
