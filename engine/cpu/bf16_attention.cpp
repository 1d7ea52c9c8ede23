// Attention of bf16 elements: scores, sums over keys and gradients of a head in fp32, in workspace.
#include "engine/cpu/bf16_attention.h"

#include <algorithm>
#include <cmath>

#include "engine/cpu/attention.h"
#include "engine/cpu/head_places.h"

namespace stagewright::cpu {

namespace {

const BFloat16* elementsOf(layers::ConstElements elements) { return static_cast<const BFloat16*>(elements.data); }
BFloat16* elementsOf(layers::Elements elements) { return static_cast<BFloat16*>(elements.data); }

using Rows = Bf16Gemm::Matrix;

// f(place of a head, its probabilities) for every head of every sample.
template <typename Visit>
void forHeads(const AttentionShape& shape, Visit&& visit)
{
    for (int sample = 0; sample < shape.batch; ++sample)
        for (int head = 0; head < shape.heads; ++head) {
            const HeadPlace place(shape, sample, head);
            visit(place, static_cast<std::size_t>(sample) * bf16::probabilitiesPerSample(shape) +
                             static_cast<std::size_t>(head) * probabilitiesPerHead(shape));
        }
}

} // namespace

void bf16AttentionForward(const AttentionShape& shape, const Bf16Kernels& kernels, const Bf16Gemm& gemm,
                          ConstElements query, int queryStride, std::span<const KeySegment> segments,
                          float* probabilities, Elements out, float* workspace)
{
    const int width = shape.headWidth();
    const float scale = 1.0F / std::sqrt(static_cast<float>(width));
    float* result = workspace;
    float* scores =
        workspace + static_cast<std::size_t>(std::min(blockRows, shape.tokens)) * static_cast<std::size_t>(width);
    forHeads(shape, [&](const HeadPlace& place, std::size_t kept) {
        for (int index = 0; index < blockCount(shape); ++index) {
            const QueryBlock block = queryBlock(shape, index);
            const Rows queries{elementsOf(query) + place(shape.tokens, queryStride, block.first), queryStride};
            BFloat16* p = reinterpret_cast<BFloat16*>(probabilities) + kept + block.offset;
            forSegments(segments, block.keys, [&](std::size_t s, int firstKey, int keys) {
                const KeySegment& segment = segments[s];
                gemm.multiply(false, true, block.rows, keys, width, scale, queries,
                              {elementsOf(segment.key) + place(segment.tokens, segment.stride), segment.stride}, 0.0F,
                              scores + firstKey, block.keys);
            });
            kernels.causalSoftmax(shape.past + block.first, block.rows, block.keys, scores, p);
            forSegments(segments, block.keys, [&](std::size_t s, int firstKey, int keys) {
                const KeySegment& segment = segments[s];
                gemm.multiply(false, false, block.rows, width, keys, 1.0F, {p + firstKey, block.keys},
                              {elementsOf(segment.value) + place(segment.tokens, segment.stride), segment.stride},
                              s == 0 ? 0.0F : 1.0F, result, width);
            });
            kernels.storeRows(block.rows, width, result, nullptr,
                              elementsOf(out) + place(shape.tokens, shape.hidden, block.first), shape.hidden);
        }
    });
}

void bf16AttentionBackward(const AttentionShape& shape, const Bf16Kernels& kernels, const Bf16Gemm& gemm,
                           ConstElements query, int queryStride, std::span<const KeySegment> segments,
                           const float* probabilities, ConstElements outGrad, Elements queryGrad,
                           std::span<const KeyGradSegment> gradients, float* workspace)
{
    const int width = shape.headWidth();
    const auto wide = static_cast<std::size_t>(width);
    const float scale = 1.0F / std::sqrt(static_cast<float>(width));
    const auto blockOf = static_cast<std::size_t>(std::min(blockRows, shape.tokens));
    const auto allKeys = static_cast<std::size_t>(shape.past + shape.tokens);
    float* keyGrad = workspace;
    float* valueGrad = keyGrad + allKeys * wide;
    float* rowsGrad = valueGrad + allKeys * wide;
    float* innerGrad = rowsGrad + blockOf * wide; // of probabilities
    auto* scoreGrad = reinterpret_cast<BFloat16*>(innerGrad + blockOf * allKeys);
    forHeads(shape, [&](const HeadPlace& place, std::size_t kept) {
        // The last block sees every key, so it may overwrite; the earlier ones add to the front.
        for (int index = blockCount(shape) - 1; index >= 0; --index) {
            const QueryBlock block = queryBlock(shape, index);
            const float before = index == blockCount(shape) - 1 ? 0.0F : 1.0F;
            const Rows queries{elementsOf(query) + place(shape.tokens, queryStride, block.first), queryStride};
            const Rows grad{elementsOf(outGrad) + place(shape.tokens, shape.hidden, block.first), shape.hidden};
            const BFloat16* p = reinterpret_cast<const BFloat16*>(probabilities) + kept + block.offset;
            gemm.multiply(true, false, block.keys, width, block.rows, 1.0F, {p, block.keys}, grad, before, valueGrad,
                          width);
            forSegments(segments, block.keys, [&](std::size_t s, int firstKey, int keys) {
                const KeySegment& segment = segments[s];
                gemm.multiply(false, true, block.rows, keys, width, 1.0F, grad,
                              {elementsOf(segment.value) + place(segment.tokens, segment.stride), segment.stride}, 0.0F,
                              innerGrad + firstKey, block.keys);
            });
            kernels.causalSoftmaxBackward(shape.past + block.first, block.rows, block.keys, p, innerGrad, scoreGrad);
            forSegments(segments, block.keys, [&](std::size_t s, int firstKey, int keys) {
                const KeySegment& segment = segments[s];
                gemm.multiply(false, false, block.rows, width, keys, scale, {scoreGrad + firstKey, block.keys},
                              {elementsOf(segment.key) + place(segment.tokens, segment.stride), segment.stride},
                              s == 0 ? 0.0F : 1.0F, rowsGrad, width);
            });
            gemm.multiply(true, false, block.keys, width, block.rows, scale, {scoreGrad, block.keys}, queries, before,
                          keyGrad, width);
            kernels.storeRows(block.rows, width, rowsGrad, nullptr,
                              elementsOf(queryGrad) + place(shape.tokens, queryStride, block.first), queryStride);
        }
        std::size_t first = 0;
        for (std::size_t s = 0; s < segments.size(); ++s) {
            const int keys = segments[s].tokens;
            const KeyGradSegment& to = gradients[s];
            const std::size_t at = place(keys, to.stride);
            for (const auto& [from, there] : {std::pair(keyGrad, to.key), std::pair(valueGrad, to.value)}) {
                if (to.empty)
                    kernels.storeRows(keys, width, from + first * wide, nullptr, elementsOf(there) + at, to.stride);
                else
                    kernels.addRows(keys, width, from + first * wide, elementsOf(there) + at, to.stride);
            }
            first += static_cast<std::size_t>(keys);
        }
    });
}

} // namespace stagewright::cpu
