// Where the ranks of an imported job are: their host, and their place in each dimension of parallelism. Kept in the
// run's configuration as `rank_places`, a line for each rank: "3 host-b pipeline=1 data=0".
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/run/run.h"

namespace stagewright {

enum class ParallelDimension : std::uint8_t {
    Pipeline,
    Data,
    Tensor,
    Expert,
    Context,
};
inline constexpr std::size_t parallelDimensionCount = 5;
std::string_view toText(ParallelDimension dimension); // "pipeline"

// The dimension of a process group by its purpose, as PyTorch's meshes, TorchTitan and Megatron-LM name it: "mesh_pp",
// "TENSOR_MODEL_PARALLEL_GROUP". Nothing for groups of several dimensions at once, or of none.
std::optional<ParallelDimension> dimensionOf(std::string_view purpose);

struct RankPlace {
    std::string host;                                                     // "": unknown
    std::array<int, parallelDimensionCount> place = {-1, -1, -1, -1, -1}; // by ParallelDimension; −1: unknown
    bool known() const;
};

std::string placesText(const std::vector<RankPlace>& ranks); // "" if nothing is known of any rank
// by rank; empty: the run says nothing. Wrong lines are skipped
std::vector<RankPlace> placesOf(const Run& run);
std::vector<RankPlace> placesOf(const TextPairs& configuration, int ranks); // the same of a run that is not in memory

} // namespace stagewright
