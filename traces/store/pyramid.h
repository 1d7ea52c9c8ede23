// Occupied time per kind and bucket of a track, at widths that are powers of two (docs/database.md, "Pyramid"). Buckets
// lie on a grid that starts at time 0, so that the pyramids of several steps add up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "schedules/timeline/timeline.h"
#include "traces/store/codec.h"

namespace stagewright {

// Occupied nanoseconds in [index << level, (index + 1) << level), by kind; without fillers, which are intended idle
// time.
struct Bucket {
    std::int64_t index = 0;
    OpKind kind{};
    Nanos occupied = 0;
};

struct PyramidLevel {
    int level = 0;               // bucket width 2^level ns
    std::vector<Bucket> buckets; // by index, then kind; without empty ones
};

inline constexpr int pyramidFanOut = 2;  // levels between two stored ones: widths grow four-fold
inline constexpr int spansPerBucket = 8; // approximate spans per bucket of the finest level
inline constexpr int highestLevel = 60;

// Levels from the finest (about spansPerBucket spans in a bucket) to the first with at most two buckets; parents are
// exact sums. Levels are multiples of pyramidFanOut. spans: of one track, sorted by start. O(spans).
std::vector<PyramidLevel> buildPyramid(std::span<const Span> spans);

std::span<const std::byte> encodeBuckets(BlockEncoder& encoder, std::span<const Bucket> buckets);
bool decodeBuckets(std::span<const std::byte> bytes, std::size_t rows, std::vector<Bucket>& out);

} // namespace stagewright
