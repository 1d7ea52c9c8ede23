// Measured times of one transformer layer in forward, backward and K-FAC's work, as PipeFisher's authors publish them
// (arXiv 2211.14133, prof/*.csv of their repository): a cost preset with one layer on each stage.
#pragma once

#include <string_view>

#include "schedules/base/result.h"
#include "schedules/model/cost_model.h"

namespace stagewright {

// "bert-large@p100:b=32" (b: 8 or 32, which is the default) in nanoseconds: a stage is one layer. pieces: that its
// inversion is cut into. Usage names those there are.
Result<CostModel> profiledCosts(const Schedule& schedule, std::string_view text, int pieces);

} // namespace stagewright
