// The model that is trained: a GPT-style decoder over bytes. Shapes in comments are (batch, tokens, hidden).
#pragma once

#include <string>

#include "schedules/base/result.h"

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

} // namespace stagewright
