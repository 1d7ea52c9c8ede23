#include "engine/cpu/attention.h"

#include <algorithm>
#include <cmath>

#include "engine/cpu/blas.h"

namespace stagewright::cpu {

namespace {

constexpr int blockRows = 64;

// Rows first … first + rows − 1 against keys 0 … keys − 1; its probabilities are (rows, keys) from `offset` on.
struct QueryBlock {
    int first;
    int rows;
    int keys;
    std::size_t offset;
};

int blockCount(const AttentionShape& shape)
{
    return (shape.tokens + blockRows - 1) / blockRows;
}

QueryBlock queryBlock(const AttentionShape& shape, int index)
{
    QueryBlock block{};
    block.first = index * blockRows;
    block.rows = std::min(blockRows, shape.tokens - block.first);
    block.keys = block.first + block.rows;
    // Blocks before this one are whole: Σ blockRows · blockRows · (k + 1).
    block.offset = static_cast<std::size_t>(blockRows) * blockRows * static_cast<std::size_t>(index) *
                   static_cast<std::size_t>(index + 1) / 2;
    return block;
}

} // namespace

std::size_t AttentionShape::probabilitiesPerHead() const
{
    const QueryBlock last = queryBlock(*this, blockCount(*this) - 1);
    return last.offset + static_cast<std::size_t>(last.rows) * static_cast<std::size_t>(last.keys);
}

std::size_t AttentionShape::probabilities() const
{
    return probabilitiesPerHead() * static_cast<std::size_t>(batch) * static_cast<std::size_t>(heads);
}

std::size_t AttentionShape::workspace() const
{
    return static_cast<std::size_t>(std::min(blockRows, tokens)) * static_cast<std::size_t>(tokens);
}

void attentionForward(const AttentionShape& shape, const Kernels& kernels, const float* qkv, float* probabilities,
                      float* out)
{
    const int width = shape.headWidth();
    const int stride = 3 * shape.hidden;
    const float scale = 1.0F / std::sqrt(static_cast<float>(width));
    const auto tokens = static_cast<std::size_t>(shape.tokens);
    const auto hidden = static_cast<std::size_t>(shape.hidden);
    for (int sample = 0; sample < shape.batch; ++sample) {
        for (int head = 0; head < shape.heads; ++head) {
            const std::size_t firstRow = static_cast<std::size_t>(sample) * tokens;
            const auto column = static_cast<std::size_t>(head) * static_cast<std::size_t>(width);
            const float* query = qkv + firstRow * 3 * hidden + column;
            const float* key = query + hidden;
            const float* value = key + hidden;
            float* result = out + firstRow * hidden + column;
            for (int index = 0; index < blockCount(shape); ++index) {
                const QueryBlock block = queryBlock(shape, index);
                const auto first = static_cast<std::size_t>(block.first);
                float* p = probabilities + block.offset;
                multiplyByTransposed(block.rows, block.keys, width, scale, {query + first * 3 * hidden, stride},
                                     {key, stride}, 0.0F, p, block.keys);
                kernels.causalSoftmax(block.first, block.rows, block.keys, p);
                multiply(block.rows, width, block.keys, 1.0F, {p, block.keys}, {value, stride}, 0.0F,
                         result + first * hidden, shape.hidden);
            }
            probabilities += shape.probabilitiesPerHead();
        }
    }
}

void attentionBackward(const AttentionShape& shape, const Kernels& kernels, const float* qkv, const float* probabilities,
                       const float* outGrad, float* qkvGrad, float* workspace)
{
    const int width = shape.headWidth();
    const int stride = 3 * shape.hidden;
    const float scale = 1.0F / std::sqrt(static_cast<float>(width));
    const auto tokens = static_cast<std::size_t>(shape.tokens);
    const auto hidden = static_cast<std::size_t>(shape.hidden);
    for (int sample = 0; sample < shape.batch; ++sample) {
        for (int head = 0; head < shape.heads; ++head) {
            const std::size_t firstRow = static_cast<std::size_t>(sample) * tokens;
            const auto column = static_cast<std::size_t>(head) * static_cast<std::size_t>(width);
            const float* query = qkv + firstRow * 3 * hidden + column;
            const float* key = query + hidden;
            const float* value = key + hidden;
            const float* grad = outGrad + firstRow * hidden + column;
            float* queryGrad = qkvGrad + firstRow * 3 * hidden + column;
            float* keyGrad = queryGrad + hidden;
            float* valueGrad = keyGrad + hidden;
            // The last block sees every key, so it overwrites; the earlier ones add to the front.
            for (int index = blockCount(shape) - 1; index >= 0; --index) {
                const QueryBlock block = queryBlock(shape, index);
                const auto first = static_cast<std::size_t>(block.first);
                const float keep = index == blockCount(shape) - 1 ? 0.0F : 1.0F;
                const float* p = probabilities + block.offset;
                const float* blockGrad = grad + first * hidden;
                multiplyTransposed(block.keys, width, block.rows, 1.0F, {p, block.keys}, {blockGrad, shape.hidden}, keep,
                                   valueGrad, stride);
                multiplyByTransposed(block.rows, block.keys, width, 1.0F, {blockGrad, shape.hidden}, {value, stride},
                                     0.0F, workspace, block.keys);
                kernels.causalSoftmaxBackward(block.first, block.rows, block.keys, p, workspace);
                multiply(block.rows, width, block.keys, scale, {workspace, block.keys}, {key, stride}, 0.0F,
                         queryGrad + first * 3 * hidden, stride);
                multiplyTransposed(block.keys, width, block.rows, scale, {workspace, block.keys},
                                   {query + first * 3 * hidden, stride}, keep, keyGrad, stride);
            }
            probabilities += shape.probabilitiesPerHead();
        }
    }
}

} // namespace stagewright::cpu
