// Slow ranks: ranks that take longer than others for the same work, as opposed to stages that cost more.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedules/base/units.h"

namespace stagewright {

// A rank's work for one of its stages: `count` ops of one sort (kind, slice, half …) that take `duration` each.
struct ChunkWork {
    int rank = 0;
    int stage = 0;
    std::int64_t sort = 0;
    std::int64_t count = 1;
    Nanos duration = 0;
};

struct RankSlowness {
    double factor = 1;  // it takes this many times as long as other ranks for the same work; at least 1
    bool known = false; // false: its only stage is on no other rank, so the stage may be the one that costs more
};

inline constexpr double slowRank = 1.05; // a factor above this stands out

// Number of the size of a rank's microbatches among `sizes` (by replica; empty: all alike): work on microbatches of
// different sizes is not alike.
std::int64_t sizeClass(std::span<const double> sizes, int replica);

// The work of a chunk (a stage on a rank) is compared with the median over the same stage's other ranks if it has
// copies, else over the chunks of all other ranks; a rank's factor is the smallest of its chunks': if one of them is
// normal, the rank is normal. By rank; O(n log n).
std::vector<RankSlowness> slownessOf(std::span<const ChunkWork> work, int ranks);

} // namespace stagewright
