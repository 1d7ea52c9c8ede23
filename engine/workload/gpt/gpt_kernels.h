// The kernels of a GPT's stage, one by one.
#pragma once

#include <memory>

#include "engine/workload/gpt/model_config.h"
#include "engine/workload/references.h"

namespace stagewright {

std::unique_ptr<TimedKernels> gptKernels(const ModelConfig& model, layers::LayerMath& math, Allocator& allocator,
                                         int samples);

} // namespace stagewright
