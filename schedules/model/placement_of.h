// Placement inferred from the positions of ops.
#pragma once

#include <vector>

#include "schedules/model/op.h"
#include "schedules/model/placement.h"

namespace stagewright {

// The first op of a (stage, microbatch) in rank order decides, forwards before others. A microbatch that no op of a
// stage names stays with the one before it; a stage that no op names goes to rank stage mod ranks.
Placement placementOf(const std::vector<std::vector<Op>>& order, int stages);

} // namespace stagewright
