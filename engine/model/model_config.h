// The model that is trained: a GPT-style decoder over bytes. Shapes in comments are (batch, tokens, hidden).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/base/units.h"

namespace stagewright {

struct ModelConfig {
    int layers = 8;
    int hidden = 128;
    int heads = 4;
    int sequence = 128;   // tokens per sample
    int vocabulary = 256; // at least the bytes that occur; more cost as much as a larger tokenizer's
    bool operator==(const ModelConfig&) const = default;
};

// Usage error where a value is out of range or heads do not divide hidden.
Result<void> checkModelConfig(const ModelConfig& model);

// "layers=8,hidden=256,heads=4,seq=128", and vocab=256 … 65536; unknown or unusable values are Usage errors naming the
// key and the remedy.
Result<ModelConfig> parseModelConfig(const std::string& text, ModelConfig defaults = {});
std::string toText(const ModelConfig& model); // the vocabulary where it is not 256

// What one stage holds: blocks firstLayer … firstLayer + layerCount − 1, the embedding on the first stage, the final
// LayerNorm, head and loss on the last.
struct StageSlice {
    int stage = 0;
    int firstLayer = 0;
    int layerCount = 0;
    bool first = false;
    bool last = false;
};

// Layers over stages, balanced by cost (the embedding and the head weigh as their FLOPs say), or as `stageLayers` says.
// Fails (Usage) where there are fewer layers than needed or stageLayers does not sum to the model's layers.
Result<std::vector<StageSlice>> sliceModel(const ModelConfig& model, int stages,
                                           const std::vector<int>& stageLayers = {});
// of each slice
Result<std::vector<int>> layersOfStages(const ModelConfig& model, int stages, const std::vector<int>& stageLayers = {});

} // namespace stagewright
