// Attention of whole sequences by warp groups: the algorithms, shapes and results of flash_tiles.h, with GEMMs of 64
// rows whose right factors, and in scores both, are read from shared memory (group_tiles.h). A block is one group; it
// owns 64 rows of one side and goes over the other side's tiles of 64, which are copied one ahead, in two stages.
#pragma once

#include "engine/cuda/flash_tiles.h"
#include "engine/cuda/group_tiles.h"

namespace stagewright::cuda {

// Tiles of one head of up to Width numbers.
template <int Width>
struct GroupShape {
    static constexpr int panels = Width / panelColumns;
    static constexpr std::uint32_t panel = panelBytes<groupRows>();
    static constexpr std::uint32_t tile = panels * panel;
    // Shared memory in bytes: own tiles and two stages of two; the keys' pass also has two numbers of each query in a
    // stage.
    static constexpr std::uint32_t forwardBytes = 5 * tile;
    static constexpr std::uint32_t queryBytes = 6 * tile;
    static constexpr std::uint32_t keyBytes = 6 * tile + 4 * groupRows * 4;
};

// sums (64 × 64) = a · bᵀ of two tiles.
template <int Width, typename Groups>
STAGEWRIGHT_TILE void multiplyTiles(const Groups& t, float (&sums)[groupRows / 8][4], std::uint32_t a, std::uint32_t b)
{
    STAGEWRIGHT_UNROLL
    for (int k = 0; k < Width / 16; ++k) {
        const auto at =
            static_cast<std::uint32_t>(k / 4) * GroupShape<Width>::panel + static_cast<std::uint32_t>(k % 4) * 32;
        t.template multiply<groupRows>(sums, a + at, b + at, k == 0);
    }
}
// sums (64 × Width) += left · tile, whose rows are left's columns.
template <int Width, typename Groups>
STAGEWRIGHT_TILE void addGemm(const Groups& t, float (&sums)[Width / 8][4], const Quad (&left)[groupRows / 16],
                              std::uint32_t tile)
{
    STAGEWRIGHT_UNROLL
    for (int k = 0; k < groupRows / 16; ++k)
        t.template multiplyRows<Width>(sums, left[k], tile + static_cast<std::uint32_t>(k) * 16 * panelRow,
                                       GroupShape<Width>::panel);
}
template <typename Groups>
STAGEWRIGHT_TILE void packLeft(const Groups& t, Quad (&left)[groupRows / 16], const float (&sums)[groupRows / 8][4])
{
    STAGEWRIGHT_UNROLL
    for (int k = 0; k < groupRows / 16; ++k) left[k] = leftOfSums(t, sums[2 * k], sums[2 * k + 1]);
}
// The group's first row of this thread's warp.
template <typename Groups>
STAGEWRIGHT_TILE int warpRow(const Groups& t)
{
    return t.thread() / 32 * 16;
}

// Queries tile · 64 …: out and the log-sum-exps.
template <int Width, typename Groups>
STAGEWRIGHT_TILE void flashForwardGroup(const Groups& t, const StagewrightFlash& f, int sample, int head, int tile)
{
    using Shape = GroupShape<Width>;
    const HeadPlace at = headPlace(f, sample, head);
    const auto stride = static_cast<std::size_t>(f.stride);
    const auto *keys = headRow<Bf16>(f, f.key, at, 0), *values = headRow<Bf16>(f, f.value, at, 0);
    const int first = tile * groupRows;
    const int own = first + warpRow(t);
    const int end = first + groupRows < f.tokens ? first + groupRows : f.tokens;
    const int tiles = (end + groupRows - 1) / groupRows;
    const float scale = headScale(f) * log2OfE;

    const auto stage = [](int j) { return (1 + static_cast<std::uint32_t>(j % 2) * 2) * Shape::tile; };
    const auto fetch = [&](int j) {
        copyPanels<Width, groupRows>(t, stage(j), keys, stride, j * groupRows, f.tokens, f.width);
        copyPanels<Width, groupRows>(t, stage(j) + Shape::tile, values, stride, j * groupRows, f.tokens, f.width);
        t.commitCopies();
    };
    copyPanels<Width, groupRows>(t, 0, headRow<Bf16>(f, f.query, at, 0), stride, first, f.tokens, f.width);
    fetch(0);

    float out[Width / 8][4] = {};
    // of rows sumRow and sumRow + 8; the lane's part of the total
    float most[2] = {-INFINITY, -INFINITY}, total[2] = {};
    for (int j = 0; j < tiles; ++j) {
        t.waitCopies();
        t.copiesReady();
        t.barrier(); // tile j is there, and nobody reads tile j − 1 any more
        if (j + 1 < tiles) fetch(j + 1);
        const int keyFirst = j * groupRows;
        float score[groupRows / 8][4];
        t.beginGemm();
        multiplyTiles<Width>(t, score, 0, stage(j));
        t.endGemm();
        if (keyFirst + groupRows > own + 1) { // some key is later than some row
            STAGEWRIGHT_UNROLL
            for (int n = 0; n < groupRows / 8; ++n) {
                STAGEWRIGHT_UNROLL
                for (int i = 0; i < 4; ++i)
                    if (keyFirst + 8 * n + sumColumn(t) + i % 2 > own + sumRow(t) + i / 2 * 8) score[n][i] = -INFINITY;
            }
        }
        STAGEWRIGHT_UNROLL
        for (int half = 0; half < 2; ++half) {
            float high = most[half];
            STAGEWRIGHT_UNROLL
            for (int n = 0; n < groupRows / 8; ++n)
                high = fmaxf(high, fmaxf(score[n][2 * half], score[n][2 * half + 1]));
            high = fmaxf(high, t.shuffleXor(high, 1)); // the four lanes that share a row
            high = fmaxf(high, t.shuffleXor(high, 2));
            const float level = high * scale;
            const float keep = t.exp2(most[half] * scale - level);
            most[half] = high;
            float sum = 0;
            STAGEWRIGHT_UNROLL
            for (int n = 0; n < groupRows / 8; ++n) {
                STAGEWRIGHT_UNROLL
                for (int i = 2 * half; i < 2 * half + 2; ++i) {
                    score[n][i] = t.exp2(score[n][i] * scale - level);
                    sum += score[n][i];
                }
            }
            total[half] = total[half] * keep + sum;
            STAGEWRIGHT_UNROLL
            for (int n = 0; n < Width / 8; ++n) {
                out[n][2 * half] *= keep;
                out[n][2 * half + 1] *= keep;
            }
        }
        Quad weight[groupRows / 16];
        packLeft(t, weight, score);
        t.beginGemm();
        addGemm<Width>(t, out, weight, stage(j) + Shape::tile);
        t.endGemm();
    }
    STAGEWRIGHT_UNROLL
    for (int half = 0; half < 2; ++half) {
        float sum = total[half];
        sum += t.shuffleXor(sum, 1);
        sum += t.shuffleXor(sum, 2);
        const int r = own + sumRow(t) + 8 * half;
        if (r >= f.tokens) continue;
        storeRow<Width>(t, f, const_cast<std::uint16_t*>(denseRow<Bf16>(f, f.out, at, r)), out, half, 1.0F / sum,
                        false);
        if (sumColumn(t) == 0) t.storeFloat(f.sums + at.sums + r, most[half] * headScale(f) + logf(sum));
    }
}

// Queries tile · 64 …: their gradients.
template <int Width, typename Groups>
STAGEWRIGHT_TILE void flashQueryGroup(const Groups& t, const StagewrightFlash& f, int sample, int head, int tile)
{
    using Shape = GroupShape<Width>;
    const HeadPlace at = headPlace(f, sample, head);
    const auto stride = static_cast<std::size_t>(f.stride);
    const std::size_t dense = static_cast<std::size_t>(f.heads) * f.width;
    const auto *keys = headRow<Bf16>(f, f.key, at, 0), *values = headRow<Bf16>(f, f.value, at, 0);
    const int first = tile * groupRows;
    const int own = first + warpRow(t);
    const int end = first + groupRows < f.tokens ? first + groupRows : f.tokens;
    const int tiles = (end + groupRows - 1) / groupRows;
    const float scale = headScale(f) * log2OfE;

    const auto stage = [](int j) { return (2 + static_cast<std::uint32_t>(j % 2) * 2) * Shape::tile; };
    const auto fetch = [&](int j) {
        copyPanels<Width, groupRows>(t, stage(j), keys, stride, j * groupRows, f.tokens, f.width);
        copyPanels<Width, groupRows>(t, stage(j) + Shape::tile, values, stride, j * groupRows, f.tokens, f.width);
        t.commitCopies();
    };
    copyPanels<Width, groupRows>(t, 0, headRow<Bf16>(f, f.query, at, 0), stride, first, f.tokens, f.width);
    copyPanels<Width, groupRows>(t, Shape::tile, denseRow<Bf16>(f, f.outGrad, at, 0), dense, first, f.tokens, f.width);
    fetch(0);
    float level[2], inner[2];
    STAGEWRIGHT_UNROLL
    for (int half = 0; half < 2; ++half) {
        const int r = own + sumRow(t) + 8 * half;
        level[half] = r < f.tokens ? t.loadFloat(f.sums + at.sums + r) * log2OfE : 0;
        inner[half] = r < f.tokens ? t.loadFloat(f.inner + at.sums + r) : 0;
    }

    float sums[Width / 8][4] = {};
    for (int j = 0; j < tiles; ++j) {
        t.waitCopies();
        t.copiesReady();
        t.barrier();
        if (j + 1 < tiles) fetch(j + 1);
        const int keyFirst = j * groupRows;
        float score[groupRows / 8][4], slope[groupRows / 8][4];
        t.beginGemm();
        multiplyTiles<Width>(t, score, 0, stage(j));
        multiplyTiles<Width>(t, slope, Shape::tile, stage(j) + Shape::tile);
        t.endGemm();
        STAGEWRIGHT_UNROLL
        for (int n = 0; n < groupRows / 8; ++n) {
            STAGEWRIGHT_UNROLL
            for (int i = 0; i < 4; ++i) {
                const bool kept = keyFirst + 8 * n + sumColumn(t) + i % 2 <= own + sumRow(t) + i / 2 * 8;
                const float probability = kept ? t.exp2(score[n][i] * scale - level[i / 2]) : 0;
                slope[n][i] = probability * (slope[n][i] - inner[i / 2]);
            }
        }
        Quad left[groupRows / 16];
        packLeft(t, left, slope);
        t.beginGemm();
        addGemm<Width>(t, sums, left, stage(j));
        t.endGemm();
    }
    STAGEWRIGHT_UNROLL
    for (int half = 0; half < 2; ++half) {
        const int r = own + sumRow(t) + 8 * half;
        if (r >= f.tokens) continue;
        storeRow<Width>(t, f, const_cast<std::uint16_t*>(headRow<Bf16>(f, f.queryGrad, at, r)), sums, half,
                        headScale(f), false);
    }
}

// Keys and values tile · 64 …: their gradients. Everything is transposed, rows are keys: so the probabilities are left
// factors.
template <int Width, typename Groups>
STAGEWRIGHT_TILE void flashKeyGroup(const Groups& t, const StagewrightFlash& f, int sample, int head, int tile)
{
    using Shape = GroupShape<Width>;
    const HeadPlace at = headPlace(f, sample, head);
    const auto stride = static_cast<std::size_t>(f.stride);
    const std::size_t dense = static_cast<std::size_t>(f.heads) * f.width;
    const auto *queries = headRow<Bf16>(f, f.query, at, 0), *grads = denseRow<Bf16>(f, f.outGrad, at, 0);
    const int first = tile * groupRows;
    const int own = first + warpRow(t);
    const int tiles = (f.tokens + groupRows - 1) / groupRows;
    const float scale = headScale(f) * log2OfE;

    // A stage: queries, gradients of out; in another place log-sum-exps and inner sums.
    const auto stage = [](int j) { return (2 + static_cast<std::uint32_t>(j % 2) * 2) * Shape::tile; };
    const auto numberAt = [](int j, int query) {
        return 6 * Shape::tile + static_cast<std::uint32_t>((j % 2 * 2 * groupRows + query) * 4);
    };
    const auto fetch = [&](int j) {
        copyPanels<Width, groupRows>(t, stage(j), queries, stride, j * groupRows, f.tokens, f.width);
        copyPanels<Width, groupRows>(t, stage(j) + Shape::tile, grads, dense, j * groupRows, f.tokens, f.width);
        static_assert(2 * groupRows == tileThreads);
        const float* from = t.thread() < groupRows ? f.sums : f.inner;
        const int query = j * groupRows + t.thread() % groupRows;
        const bool there = query < f.tokens;
        t.copy4(numberAt(j, t.thread()), from + at.sums + (there ? query : 0), there);
        t.commitCopies();
    };
    copyPanels<Width, groupRows>(t, 0, headRow<Bf16>(f, f.key, at, 0), stride, first, f.tokens, f.width);
    copyPanels<Width, groupRows>(t, Shape::tile, headRow<Bf16>(f, f.value, at, 0), stride, first, f.tokens, f.width);
    fetch(tile);

    float keySums[Width / 8][4] = {}, valueSums[Width / 8][4] = {};
    for (int j = tile; j < tiles; ++j) { // earlier queries have no such key
        t.waitCopies();
        t.copiesReady();
        t.barrier();
        if (j + 1 < tiles) fetch(j + 1);
        const int queryFirst = j * groupRows;
        float score[groupRows / 8][4], slope[groupRows / 8][4];
        t.beginGemm();
        multiplyTiles<Width>(t, score, 0, stage(j));
        multiplyTiles<Width>(t, slope, Shape::tile, stage(j) + Shape::tile);
        t.endGemm();
        Quad weight[groupRows / 16], left[groupRows / 16];
        STAGEWRIGHT_UNROLL
        for (int k = 0; k < groupRows / 16; ++k) { // packed at once, as registers are few
            STAGEWRIGHT_UNROLL
            for (int i = 0; i < 4; ++i) {
                const int n = 2 * k + i / 2;
                const int column = 8 * n + sumColumn(t) + i % 2;
                const float level = t.sharedFloat(numberAt(j, column)) * log2OfE;
                const float inner = t.sharedFloat(numberAt(j, groupRows + column));
                STAGEWRIGHT_UNROLL
                for (int half = 0; half < 2; ++half) {
                    float& probability = score[n][2 * half + i % 2];
                    float& fall = slope[n][2 * half + i % 2];
                    const bool kept =
                        own + sumRow(t) + 8 * half <= queryFirst + column && queryFirst + column < f.tokens;
                    probability = kept ? t.exp2(probability * scale - level) : 0;
                    fall = probability * (fall - inner);
                }
            }
            weight[k] = leftOfSums(t, score[2 * k], score[2 * k + 1]);
            left[k] = leftOfSums(t, slope[2 * k], slope[2 * k + 1]);
        }
        t.beginGemm();
        addGemm<Width>(t, valueSums, weight, stage(j) + Shape::tile);
        addGemm<Width>(t, keySums, left, stage(j));
        t.endGemm();
    }
    STAGEWRIGHT_UNROLL
    for (int half = 0; half < 2; ++half) {
        const int r = own + sumRow(t) + 8 * half;
        if (r >= f.tokens) continue;
        storeRow<Width>(t, f, const_cast<std::uint16_t*>(headRow<Bf16>(f, f.keyGrad, at, r)), keySums, half,
                        headScale(f), f.addKeys != 0);
        storeRow<Width>(t, f, const_cast<std::uint16_t*>(headRow<Bf16>(f, f.valueGrad, at, r)), valueSums, half, 1.0F,
                        f.addKeys != 0);
    }
}

} // namespace stagewright::cuda
