// The blocks of rows in which attention on a CPU takes its queries, and what it keeps and borrows: apart from its
// arithmetic, so that a stage's memory is known without a matrix library.
#pragma once

#include <algorithm>
#include <cstddef>

#include "engine/device/math.h"

namespace stagewright::cpu {

using layers::AttentionShape;

inline constexpr int blockRows = 64;

// Rows first … first + rows − 1 of the queries against keys 0 … keys − 1; its probabilities are (rows, keys) from
// `offset` on.
struct QueryBlock {
    int first;
    int rows;
    int keys;
    std::size_t offset;
};

inline int blockCount(const AttentionShape& shape) { return (shape.tokens + blockRows - 1) / blockRows; }

inline QueryBlock queryBlock(const AttentionShape& shape, int index)
{
    QueryBlock block{};
    block.first = index * blockRows;
    block.rows = std::min(blockRows, shape.tokens - block.first);
    block.keys = shape.past + block.first + block.rows;
    // Blocks before this one are whole: Σ blockRows · (past + blockRows · (k + 1)).
    const auto before = static_cast<std::size_t>(index);
    block.offset = blockRows * (static_cast<std::size_t>(shape.past) * before + blockRows * before * (before + 1) / 2);
    return block;
}

// Sizes for bf16 elements, two to a float. A sample's probabilities end at a whole float, so that a batch can be cut in
// two.
namespace bf16 {

std::size_t probabilitiesPerSample(const AttentionShape& shape); // elements kept; a head's follow one another
std::size_t probabilityFloats(const AttentionShape& shape);      // of all samples
// Floats that forward and backward need for themselves. Forward: a block's scores, and its rows of one head's result.
// Backward: a block's gradients of probabilities, in fp32 and then of scores in bf16; the query gradients of its rows;
// one head's key and value gradients.
std::size_t forwardWorkspace(const AttentionShape& shape);
std::size_t backwardWorkspace(const AttentionShape& shape);

// GEMMs of fp32 are rounded to bf16 so many columns at a time, as they leave the cache otherwise.
inline constexpr int gemmColumns = 512;
inline std::size_t gemmWorkspace(int rows, int columns) // floats
{
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(std::min(columns, gemmColumns));
}

} // namespace bf16

std::size_t probabilitiesPerHead(const AttentionShape& shape);
std::size_t probabilityCount(const AttentionShape& shape);   // floats kept from forward to backward
std::size_t attentionWorkspace(const AttentionShape& shape); // floats backward needs for itself

} // namespace stagewright::cpu
