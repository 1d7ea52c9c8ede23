// How long a message between two stages takes.
#pragma once

#include <span>
#include <vector>

#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"

namespace stagewright {

// Bytes of the messages above each stage; where replicas' microbatches differ in size, replica after replica.
std::vector<Bytes> boundaryOf(const CostModel& costs);

// Delay of the message that `op` of `rank` takes from `stage` (its own stage + offset), for copies, counts, slices and
// halves too. slices: how many equal ones a microbatch has, where the schedule gives no lengths.
Nanos messageDelay(const Schedule& schedule, const Links& links, std::span<const Bytes> boundary, const Op& op,
                   int stage, int offset, int rank, int slices = 1);

} // namespace stagewright
