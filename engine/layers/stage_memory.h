// What a stage takes in memory, from its shape alone: what an Allocator counts, to the byte.
#pragma once

#include "engine/device/backend.h"
#include "engine/model/model_config.h"
#include "schedules/model/cost_model.h"

namespace stagewright {

// The part of it that depends on the device.
struct StageLayout {
    bool cuda = false;    // engine/cuda: masters in addition to narrower weights, attention by whole squares or streamed, activations made at once
    int elementBytes = 4; // of activations and of the weights that layers compute with
};
// Of a backend by name and the precision asked of it.
StageLayout layoutOf(std::string_view backend, Precision precision);
// Tokens of a sample from which attention on a CUDA device keeps a number a row and head instead of its probabilities: 512 where
// tiles go to the matrix units (two bytes an element, heads of a multiple of 8 numbers), 4,096 where keys stream past a row, or what
// the environment's STAGEWRIGHT_CUDA_FLASH_FROM says; never for heads of over 128.
int cudaStreamFrom(int elementBytes, int headWidth);

// Of one stage with microbatches of `microbatchSize` whole samples (engine/layers/layers.h lists the tensors): activation is
// kept after F, activation − freedAtInput after I; workspace is the most that F, I, B or W of one microbatch borrows, and what a
// device keeps for its losses; boundary is a message in either direction, 0 where the stage is the whole model. optimizer depends
// on the kind alone: two states a weight for AdamW, one for Sgd with momentum.
StageMemory stageMemoryOf(const ModelConfig& model, const StageSlice& slice, int microbatchSize,
                          const OptimizerConfig& optimizer = {}, const StageLayout& layout = {});

// Weights of each of a stage's layers (embedding, blocks, head), in the order of its parameters.
std::vector<std::int64_t> layerElements(const ModelConfig& model, const StageSlice& slice);

// What each rank on a CUDA device takes in addition: the workspace of cuBLASLt, as much as it requests on Hopper.
inline constexpr Bytes cudaRankBytes = Bytes{32} << 20;

} // namespace stagewright
