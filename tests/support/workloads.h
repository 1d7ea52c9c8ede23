// What tests train.
#pragma once

#include <memory>

#include "engine/workload/gpt/gpt.h"

namespace stagewright::test {

inline std::shared_ptr<const Gpt> gpt(const ModelConfig& config = {}) { return std::make_shared<const Gpt>(config); }

} // namespace stagewright::test
