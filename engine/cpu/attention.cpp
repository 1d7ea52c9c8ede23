#include "engine/cpu/attention.h"

#include <cmath>

#include "engine/cpu/head_places.h"

namespace stagewright::cpu {

namespace {

const float* floats(ConstElements elements) { return static_cast<const float*>(elements.data); }
float* floats(Elements elements) { return static_cast<float*>(elements.data); }

} // namespace

void attentionForward(const AttentionShape& shape, const Kernels& kernels, const Gemm& gemm, const float* query,
                      int queryStride, std::span<const KeySegment> segments, float* probabilities, float* out)
{
    const int width = shape.headWidth();
    const float scale = 1.0F / std::sqrt(static_cast<float>(width));
    for (int sample = 0; sample < shape.batch; ++sample) {
        for (int head = 0; head < shape.heads; ++head) {
            const HeadPlace place(shape, sample, head);
            const float* queries = query + place(shape.tokens, queryStride);
            float* result = out + place(shape.tokens, shape.hidden);
            for (int index = 0; index < blockCount(shape); ++index) {
                const QueryBlock block = queryBlock(shape, index);
                const auto first = static_cast<std::size_t>(block.first);
                const Matrix blockQueries{queries + first * static_cast<std::size_t>(queryStride), queryStride};
                float* p = probabilities + block.offset;
                forSegments(segments, block.keys, [&](std::size_t s, int firstKey, int keys) {
                    const KeySegment& segment = segments[s];
                    gemm.timesTransposed(block.rows, keys, width, scale, blockQueries,
                                         {floats(segment.key) + place(segment.tokens, segment.stride), segment.stride},
                                         0.0F, p + firstKey, block.keys);
                });
                kernels.causalSoftmax(shape.past + block.first, block.rows, block.keys, p);
                forSegments(segments, block.keys, [&](std::size_t s, int firstKey, int keys) {
                    const KeySegment& segment = segments[s];
                    gemm.times(block.rows, width, keys, 1.0F, {p + firstKey, block.keys},
                               {floats(segment.value) + place(segment.tokens, segment.stride), segment.stride},
                               s == 0 ? 0.0F : 1.0F, result + first * static_cast<std::size_t>(shape.hidden),
                               shape.hidden);
                });
            }
            probabilities += probabilitiesPerHead(shape);
        }
    }
}

void attentionBackward(const AttentionShape& shape, const Kernels& kernels, const Gemm& gemm, const float* query,
                       int queryStride, std::span<const KeySegment> segments, const float* probabilities,
                       const float* outGrad, float* queryGrad, std::span<const KeyGradSegment> gradients,
                       float* workspace)
{
    const int width = shape.headWidth();
    const float scale = 1.0F / std::sqrt(static_cast<float>(width));
    for (int sample = 0; sample < shape.batch; ++sample) {
        for (int head = 0; head < shape.heads; ++head) {
            const HeadPlace place(shape, sample, head);
            const std::size_t queryPlace = place(shape.tokens, queryStride);
            const float* grad = outGrad + place(shape.tokens, shape.hidden);
            // The last block sees every key, so it may overwrite; the earlier ones add to the front.
            for (int index = blockCount(shape) - 1; index >= 0; --index) {
                const QueryBlock block = queryBlock(shape, index);
                const auto first = static_cast<std::size_t>(block.first);
                const bool firstVisit = index == blockCount(shape) - 1;
                const std::size_t rowPlace = queryPlace + first * static_cast<std::size_t>(queryStride);
                const float* p = probabilities + block.offset;
                const Matrix blockGrad{grad + first * static_cast<std::size_t>(shape.hidden), shape.hidden};
                forSegments(segments, block.keys, [&](std::size_t s, int firstKey, int keys) {
                    const KeySegment& segment = segments[s];
                    const KeyGradSegment& to = gradients[s];
                    gemm.transposedTimes(keys, width, block.rows, 1.0F, {p + firstKey, block.keys}, blockGrad,
                                         firstVisit && to.empty ? 0.0F : 1.0F,
                                         floats(to.value) + place(segment.tokens, to.stride), to.stride);
                    gemm.timesTransposed(
                        block.rows, keys, width, 1.0F, blockGrad,
                        {floats(segment.value) + place(segment.tokens, segment.stride), segment.stride}, 0.0F,
                        workspace + firstKey, block.keys);
                });
                kernels.causalSoftmaxBackward(shape.past + block.first, block.rows, block.keys, p, workspace);
                forSegments(segments, block.keys, [&](std::size_t s, int firstKey, int keys) {
                    const KeySegment& segment = segments[s];
                    const KeyGradSegment& to = gradients[s];
                    gemm.times(block.rows, width, keys, scale, {workspace + firstKey, block.keys},
                               {floats(segment.key) + place(segment.tokens, segment.stride), segment.stride},
                               s == 0 ? 0.0F : 1.0F, queryGrad + rowPlace, queryStride);
                    gemm.transposedTimes(keys, width, block.rows, scale, {workspace + firstKey, block.keys},
                                         {query + rowPlace, queryStride}, firstVisit && to.empty ? 0.0F : 1.0F,
                                         floats(to.key) + place(segment.tokens, to.stride), to.stride);
                });
            }
            probabilities += probabilitiesPerHead(shape);
        }
    }
}

} // namespace stagewright::cpu
