// StateSharding: which of the ranks that share a stage owns which piece of its weights, gradients and optimizer state.
// A stage's parameters are one flat vector in the order of its layers, padded so that even shards are of one size
// (ZeRO, arXiv 1910.02054; shares: Cephalo, arXiv 2411.01075). Members are those ranks in their order, 0 to members −
// 1.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/base/units.h"

namespace stagewright {

enum class ShardLevel : std::uint8_t {
    None,      // every member has everything (ZeRO 0)
    Optimizer, // the optimizer state is sharded (ZeRO 1)
    Gradients, // and the gradients (ZeRO 2)
    Weights,   // and the weights (ZeRO 3, FSDP)
};
std::string_view toText(ShardLevel level); // "none", "optimizer", "gradients", "weights"

enum class ShardBy : std::uint8_t {
    Even,   // equal pieces of the padded vector
    Layer,  // whole layers, each to the member that owns least so far
    Shares, // given parts of the vector, rounded to whole elements so that they sum to it
};

struct ShardShare { // part / of
    std::int64_t part = 1;
    std::int64_t of = 1;
    bool operator==(const ShardShare&) const = default;
};

struct StateSharding {
    ShardLevel level = ShardLevel::None;
    ShardBy by = ShardBy::Even;
    std::vector<ShardShare> shares; // Shares: by member, summing to 1; one may be 0
    // gradients go to their owners in pieces of so many bytes at most; 0: a stage's all at once
    Bytes bucket = 0;

    bool shards(ShardLevel what) const { return level >= what && what != ShardLevel::None; }
    bool operator==(const StateSharding&) const = default;
};

// "none", "weights", "optimizer:by=layer", "gradients:shares=3/5,2/5". Round trip with toText, but for the bucket.
Result<StateSharding> parseSharding(std::string_view text);
std::string toText(const StateSharding& sharding);
// Usage: shares are given for another number of members.
Result<void> checkMembers(const StateSharding& sharding, int members);

// [begin, end) of a stage's flat vector; the last even piece may reach into the padding.
struct ShardPiece {
    int owner = 0; // member
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t size() const { return end - begin; }
    bool operator==(const ShardPiece&) const = default;
};

struct FlatState {
    std::int64_t elements = 0;
    std::int64_t padded = 0;        // ≥ elements
    std::vector<ShardPiece> pieces; // ascending, from 0 to padded without holes; none is empty

    std::int64_t ownedBy(int member) const; // elements, padding included
    std::int64_t largestOwned(int members) const;
};

// layers: elements of each layer in order, at least one. The division is the same at every level; None is divided
// evenly, as its sums are on their way.
FlatState flatStateOf(const StateSharding& sharding, std::span<const std::int64_t> layers, int members);

// The vector in pieces of at most `perBucket` elements, last elements first, as a backward makes them; 0: one piece.
// owner: number.
std::vector<ShardPiece> bucketsOf(std::int64_t elements, std::int64_t perBucket);

} // namespace stagewright
