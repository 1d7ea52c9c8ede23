// The blocks of rows in which attention on a CPU takes its queries, and what it keeps and borrows: apart from its arithmetic, so that a
// stage's memory is known without a matrix library.
#pragma once

#include <algorithm>
#include <cstddef>

#include "engine/layers/math.h"

namespace stagewright::cpu {

using layers::AttentionShape;

inline constexpr int blockRows = 64;

// Rows first … first + rows − 1 of the queries against keys 0 … keys − 1; its probabilities are (rows, keys) from `offset` on.
struct QueryBlock {
    int first;
    int rows;
    int keys;
    std::size_t offset;
};

inline int blockCount(const AttentionShape& shape)
{
    return (shape.tokens + blockRows - 1) / blockRows;
}

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

std::size_t probabilitiesPerHead(const AttentionShape& shape);
std::size_t probabilityCount(const AttentionShape& shape);   // floats kept from forward to backward
std::size_t attentionWorkspace(const AttentionShape& shape); // floats backward needs for itself

} // namespace stagewright::cpu
