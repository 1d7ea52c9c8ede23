// What a stage takes in memory, from its shape alone: what an Allocator counts, to the byte.
#pragma once

#include "engine/device/traits.h"
#include "engine/layers/parameter_view.h"
#include "engine/workload/gpt/model_config.h"
#include "engine/workload/stage_model.h"
#include "schedules/model/cost_model.h"

namespace stagewright {

// Memory of one stage with microbatches of `microbatchSize` whole samples (engine/workload/gpt/layers.h lists the
// tensors): activation is kept after F, activation − freedAtInput after I; workspace is the most that F, I, B or W of
// one microbatch borrows, and what a device keeps for its losses; boundary is a message in either direction, 0 where
// the stage is the whole model. optimizer depends on the kind alone: two states a weight for AdamW, one for Sgd with
// momentum.
StageMemory stageMemoryOf(const ModelConfig& model, const StageSlice& slice, int microbatchSize,
                          const OptimizerConfig& optimizer = {}, const StageLayout& layout = {});

// Weights of each of a stage's layers (embedding, blocks, head), in the order of its parameters.
std::vector<std::int64_t> layerElements(const ModelConfig& model, const StageSlice& slice);

} // namespace stagewright
