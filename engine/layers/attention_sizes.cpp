#include "engine/layers/attention_sizes.h"

namespace stagewright::cpu {

std::size_t probabilitiesPerHead(const AttentionShape& shape)
{
    const QueryBlock last = queryBlock(shape, blockCount(shape) - 1);
    return last.offset + static_cast<std::size_t>(last.rows) * static_cast<std::size_t>(last.keys);
}

std::size_t probabilityCount(const AttentionShape& shape)
{
    return probabilitiesPerHead(shape) * static_cast<std::size_t>(shape.batch) * static_cast<std::size_t>(shape.heads);
}

std::size_t attentionWorkspace(const AttentionShape& shape)
{
    return static_cast<std::size_t>(std::min(blockRows, shape.tokens)) * static_cast<std::size_t>(shape.past + shape.tokens);
}

} // namespace stagewright::cpu
