// Costs of a run with a time for every kind of backward.
#pragma once

#include "schedules/cost_model.h"

namespace stagewright {

// A kind that never ran gets its time from those that did: B = I + W, and I and W each half of B.
void completeCosts(CostModel& costs, int ranks);

} // namespace stagewright
