// Schedules of a building block.
#pragma once

#include "schedules/heuristic/building_block.h"

namespace stagewright {

struct BlockOptions {
    bool reorder = true;  // else the order of the repeated block as it is
    GeneratorCosts costs; // with which reordering compares; the memory cap is the repeated block's own peak
};
// The block repeated for the microbatches. W's not placed in the block go into the first idle slots, oldest first.
// Reordering moves passes into idle time as long as no rank holds more than the fullest rank of the repeated block
// does; it never makes the schedule longer. Fails (Invalid) where checkBlock does. O(letters × interval); small shapes
// (up to 128 ranks × microbatches) are searched besides, some thousand tries.
Result<Schedule> scheduleOf(const Block& block, int microbatches, const BlockOptions& options = {});

} // namespace stagewright
