// The family of blocks that the V search goes through: hops between neighbours are the same on all devices before and
// on all after a split (Qi et al. 2024, arXiv 2405.15362, appendix A). Internal to schedules/plan.
#pragma once

#include <cstddef>
#include <vector>

#include "schedules/heuristic/building_block.h"

namespace stagewright::planning {

// Valid blocks of V placement without W's whose bound on the peak is at most mostChunks half activations and no more
// than 4 below: `most` of them, spread evenly over all by peak and length. Deterministic. O(devices²), about 20 ms for
// 8 devices.
std::vector<Block> blockFamily(int devices, int mostChunks, std::size_t most);

} // namespace stagewright::planning
