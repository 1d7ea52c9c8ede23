// State in chunks (PatrickStar, arXiv 2108.05818): tensors packed into pieces of one size, and how many of those fit on
// a device beside everything else.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "schedules/base/units.h"
#include "schedules/tiers/residency.h"

namespace stagewright {

// Tensors by chunk, in their order: one that does not fit the rest of the open chunk opens the next. nullopt: one is
// larger than a chunk.
std::optional<std::vector<std::vector<int>>> packIntoChunks(std::span<const std::int64_t> sizes, std::int64_t chunk);

// Chunks that fit at each moment beside what is not in chunks (by moment, bytes at its end): the least room of the
// moment and the next one, the last's next being the first, less a reserve.
std::vector<int> chunkBudgets(Bytes cap, std::span<const Bytes> notInChunks, Bytes reserve, Bytes chunk);

// A step of one microbatch: forwards need chunk 0, 1, …, backwards the same the other way, and change them, as
// gradients take the weights' place.
Accesses sweepOfLayers(int layers);
// An F or B of a rank's list: the weights of its layers one after the other; B goes back, with the layer's gradient
// beside. Piece l is a layer's weights, layers + l its gradient.
Accesses accessesOfPasses(std::span<const char> passes, int layers); // 'F' or 'B'

// The lowest caps with which a step runs, and from which nothing is loaded twice. In chunks, above `least`.
struct LowestCaps {
    std::int64_t runs = 0, noReloads = 0;
};
LowestCaps lowestCaps(const AccessTrace& trace, std::span<const Bytes> notInChunks, Bytes reserve, Bytes chunk);

// Chunks of optimizer state that stay on the device: 80 % of what is left, 12 bytes an element (fp32 weights and both
// moments).
std::int64_t optimizerChunksOnDevice(Bytes cap, Bytes peakNotInChunks, Bytes fp16, std::int64_t elementsOfChunk);

} // namespace stagewright
