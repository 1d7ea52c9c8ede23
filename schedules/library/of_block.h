// What the schedules made of a building block share.
#pragma once

#include <string>
#include <string_view>

#include "schedules/heuristic/block_schedule.h"
#include "schedules/heuristic/building_block.h"
#include "schedules/library/draft.h"

namespace stagewright::library {

// The block repeated, filled and squeezed for the shape, and reordered unless reorder=no. Errors: those of scheduleOf.
inline Result<Schedule> ofBlock(std::string_view name, const Block& block, const Shape& shape)
{
    BlockOptions options;
    options.reorder = shape.parameter("reorder") != "no";
    options.costs = shape.costs;
    auto made = scheduleOf(block, shape.microbatches, options);
    if (made) made->name = std::string(name);
    return made;
}

} // namespace stagewright::library
