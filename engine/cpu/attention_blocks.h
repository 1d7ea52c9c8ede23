// The blocks of rows in which attention takes its queries.
#pragma once

#include <algorithm>
#include <cstddef>

#include "engine/cpu/attention.h"

namespace stagewright::cpu {

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

} // namespace stagewright::cpu
