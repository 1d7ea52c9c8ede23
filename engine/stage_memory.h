// What a stage of the CPU layers takes in memory, from its shape alone: what an Allocator counts, to the byte.
#pragma once

#include "engine/backend.h"
#include "engine/model_config.h"
#include "schedules/cost_model.h"

namespace stagewright {

// Of one stage with microbatches of `microbatchSize` whole samples (engine/layers/layers.h lists the tensors): activation is
// kept after F, activation − freedAtInput after I; workspace is the most that F, I, B or W of one microbatch borrows;
// boundary is a message in either direction, 0 where the stage is the whole model. optimizer depends on the kind alone:
// two states a weight for AdamW, one for Sgd with momentum.
StageMemory stageMemoryOf(const ModelConfig& model, const StageSlice& slice, int microbatchSize,
                          const OptimizerConfig& optimizer = {});

} // namespace stagewright
