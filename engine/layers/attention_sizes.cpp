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
    return static_cast<std::size_t>(std::min(blockRows, shape.tokens)) *
           static_cast<std::size_t>(shape.past + shape.tokens);
}

namespace bf16 {

namespace {

std::size_t blockScores(const AttentionShape& shape)
{
    return static_cast<std::size_t>(std::min(blockRows, shape.tokens)) *
           static_cast<std::size_t>(shape.past + shape.tokens);
}

std::size_t blockResult(const AttentionShape& shape)
{
    return static_cast<std::size_t>(std::min(blockRows, shape.tokens)) * static_cast<std::size_t>(shape.headWidth());
}

} // namespace

std::size_t probabilitiesPerSample(const AttentionShape& shape)
{
    const std::size_t count = probabilitiesPerHead(shape) * static_cast<std::size_t>(shape.heads);
    return count + count % 2;
}

std::size_t probabilityFloats(const AttentionShape& shape)
{
    return probabilitiesPerSample(shape) * static_cast<std::size_t>(shape.batch) / 2;
}

std::size_t forwardWorkspace(const AttentionShape& shape) { return blockScores(shape) + blockResult(shape); }

std::size_t backwardWorkspace(const AttentionShape& shape)
{
    const std::size_t head =
        static_cast<std::size_t>(shape.past + shape.tokens) * static_cast<std::size_t>(shape.headWidth());
    return blockScores(shape) + (blockScores(shape) + 1) / 2 + blockResult(shape) + 2 * head;
}

} // namespace bf16

} // namespace stagewright::cpu
