// Attention of whole sequences on the matrix units: FlashAttention-2 (arXiv 2307.08691, algorithms 1 and 2), causal,
// bf16 in and out, fp32 sums. Scores and probabilities live in registers, as sums of one GEMM and left factor of the
// next. Nothing is added up between blocks: the backward has a kernel that owns rows of queries and one that owns rows
// of keys, each of which makes the probabilities again from the kept log-sum-exp (seven GEMMs of a tile where
// sharing them takes five and atomic additions), so that the same input gives the same bits. Shapes and pointers:
// StagewrightFlash (module_abi.h); `inner` = Σ out · outGrad of each row has been made before the backward
// (flashInnerRow).
//
// A block has tileWarps warps; each owns 16 · rowTiles rows of the block's tile and goes over the other side's tiles,
// which are copied to shared memory one ahead, in two stages.
#pragma once

#include <type_traits>

#include "engine/cuda/matrix_tiles.h"

namespace stagewright::cuda {

// Heads of up to Width numbers; narrower ones are filled up with zeros. Chosen for the registers (no spills), for two
// blocks on a multiprocessor with 164 KiB of shared memory, and by time on an H100 (docs/performance.md).
template <int Width>
struct FlashShape;
template <>
struct FlashShape<64> {
    static constexpr int rowTiles = 2, streamed = 64, streamedBack = 64;
    // in registers, going forward; else they are loaded again for every tile of keys
    static constexpr bool keepsQueries = false;
};
template <>
struct FlashShape<128> {
    static constexpr int rowTiles = 1, streamed = 64, streamedBack = 32;
    static constexpr bool keepsQueries = true;
};
template <int Width>
inline constexpr int flashRows = 16 * tileWarps* FlashShape<Width>::rowTiles; // of a block
// Shared memory in bytes.
template <int Width>
inline constexpr std::uint32_t flashForwardBytes = tileBytes<Width>(flashRows<Width> + 4 * FlashShape<Width>::streamed);
template <int Width>
inline constexpr std::uint32_t flashQueryBytes = tileBytes<Width>(2 * flashRows<Width> +
                                                                  4 * FlashShape<Width>::streamedBack);
template <int Width>
inline constexpr std::uint32_t flashKeyBytes = flashQueryBytes<Width> + 4 * FlashShape<Width>::streamedBack * 4;

// Whether these kernels compute it in bf16: they copy 16 bytes at a time.
inline bool fitsTiles(const StagewrightFlash& f)
{
    const auto aligned = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; };
    return f.width % 8 == 0 && f.width <= 128 && f.stride % 8 == 0 && aligned(f.query) && aligned(f.key) &&
           aligned(f.value) && aligned(f.out) && aligned(f.outGrad) && aligned(f.queryGrad) && aligned(f.keyGrad) &&
           aligned(f.valueGrad);
}
// launch(integral constant) with the width that heads are filled up to.
template <typename Launch>
void withTileWidth(const StagewrightFlash& f, Launch&& launch)
{
    if (f.width <= 64)
        launch(std::integral_constant<int, 64>());
    else
        launch(std::integral_constant<int, 128>());
}
inline int flashBlocks(int tokens, int rows) { return (tokens + rows - 1) / rows; }

// exp(x · headScale) = exp2(x · headScale · log2 e)
inline constexpr float log2OfE = 1.44269504F;

// Row r's numbers column …, as pairs, times `scale`; `add`: to what is there. Only columns that the head has.
template <int Width, typename Threads>
STAGEWRIGHT_TILE void storeRow(const Threads& t, const StagewrightFlash& f, std::uint16_t* to,
                               const float (&sums)[Width / 8][4], int half, float scale, bool add)
{
    STAGEWRIGHT_UNROLL
    for (int n = 0; n < Width / 8; ++n) {
        const int column = n * 8 + sumColumn(t);
        if (column >= f.width) continue;
        float one = sums[n][2 * half] * scale;
        float next = sums[n][2 * half + 1] * scale;
        if (add) {
            const std::uint16_t past[2] = {static_cast<std::uint16_t>(t.loadPair(to + column)),
                                           static_cast<std::uint16_t>(t.loadPair(to + column) >> 16)};
            one += Bf16::load(past, 0);
            next += Bf16::load(past, 1);
        }
        t.storePair(to + column, t.pack(one, next));
    }
}

// Queries tile · flashRows …: out and the log-sum-exps. Algorithm 1.
template <int Width, typename Threads>
STAGEWRIGHT_TILE void flashForwardTile(const Threads& t, const StagewrightFlash& f, int sample, int head, int tile)
{
    constexpr int rowTiles = FlashShape<Width>::rowTiles, streamed = FlashShape<Width>::streamed,
                  rows = flashRows<Width>;
    constexpr int steps = Width / 16;
    const HeadPlace at = headPlace(f, sample, head);
    const auto stride = static_cast<std::size_t>(f.stride);
    const auto *keys = headRow<Bf16>(f, f.key, at, 0), *values = headRow<Bf16>(f, f.value, at, 0);
    const int first = tile * rows;
    const int own = first + t.thread() / 32 * 16 * rowTiles; // the warp's first row
    const int end = first + rows < f.tokens ? first + rows : f.tokens;
    const int tiles = (end + streamed - 1) / streamed;
    const float scale = headScale(f) * log2OfE;

    const auto stage = [](int j) { return tileBytes<Width>(rows + j % 2 * 2 * streamed); };
    const auto fetch = [&](int j) {
        copyTile<Width, streamed>(t, stage(j), keys, stride, j * streamed, f.tokens, f.width);
        copyTile<Width, streamed>(t, stage(j) + tileBytes<Width>(streamed), values, stride, j * streamed, f.tokens,
                                  f.width);
        t.commitCopies();
    };
    copyTile<Width, rows>(t, 0, headRow<Bf16>(f, f.query, at, 0), stride, first, f.tokens, f.width);
    fetch(0);
    t.waitCopies();
    t.barrier();
    constexpr bool keeps = FlashShape<Width>::keepsQueries;
    Quad query[rowTiles][keeps ? steps : 1];
    const auto loadQueries = [&](int from, int to) {
        STAGEWRIGHT_UNROLL
        for (int m = 0; m < rowTiles; ++m) {
            STAGEWRIGHT_UNROLL
            for (int k = from; k < to; ++k) query[m][keeps ? k : 0] = leftOf<Width>(t, 0, own - first + 16 * m, 16 * k);
        }
    };
    if (keeps) loadQueries(0, steps);

    float out[rowTiles][Width / 8][4] = {};
    float most[rowTiles][2], total[rowTiles][2]; // of rows sumRow and sumRow + 8; the lane's part of the total
    STAGEWRIGHT_UNROLL
    for (int m = 0; m < rowTiles; ++m) {
        most[m][0] = most[m][1] = -INFINITY;
        total[m][0] = total[m][1] = 0;
    }
    for (int j = 0; j < tiles; ++j) {
        if (j > 0) {
            t.waitCopies();
            t.barrier(); // tile j is there, and nobody reads tile j − 1 any more
        }
        if (j + 1 < tiles) fetch(j + 1);
        const int keyFirst = j * streamed;
        // the whole warp: it has no such row, or they are all later keys
        if (own >= f.tokens || keyFirst >= own + 16 * rowTiles) continue;

        float score[rowTiles][streamed / 8][4] = {};
        STAGEWRIGHT_UNROLL
        for (int k = 0; k < steps; ++k) {
            if (!keeps) loadQueries(k, k + 1);
            STAGEWRIGHT_UNROLL
            for (int n = 0; n < streamed / 16; ++n) {
                const Quad key = rightOfTransposed<Width>(t, stage(j), 16 * n, 16 * k);
                STAGEWRIGHT_UNROLL
                for (int m = 0; m < rowTiles; ++m) {
                    t.multiplyAdd(score[m][2 * n], query[m][keeps ? k : 0], key.at[0], key.at[1]);
                    t.multiplyAdd(score[m][2 * n + 1], query[m][keeps ? k : 0], key.at[2], key.at[3]);
                }
            }
        }
        if (keyFirst + streamed > own + 1) { // some key is later than some row
            STAGEWRIGHT_UNROLL
            for (int m = 0; m < rowTiles; ++m) {
                STAGEWRIGHT_UNROLL
                for (int n = 0; n < streamed / 8; ++n) {
                    STAGEWRIGHT_UNROLL
                    for (int i = 0; i < 4; ++i)
                        if (keyFirst + 8 * n + sumColumn(t) + i % 2 > own + 16 * m + sumRow(t) + i / 2 * 8)
                            score[m][n][i] = -INFINITY;
                }
            }
        }
        STAGEWRIGHT_UNROLL
        for (int m = 0; m < rowTiles; ++m) {
            STAGEWRIGHT_UNROLL
            for (int half = 0; half < 2; ++half) {
                float high = most[m][half];
                STAGEWRIGHT_UNROLL
                for (int n = 0; n < streamed / 8; ++n)
                    high = fmaxf(high, fmaxf(score[m][n][2 * half], score[m][n][2 * half + 1]));
                high = fmaxf(high, t.shuffleXor(high, 1)); // the four lanes that share a row
                high = fmaxf(high, t.shuffleXor(high, 2));
                const float level = high * scale;
                const float keep = t.exp2(most[m][half] * scale - level);
                most[m][half] = high;
                float sum = 0;
                STAGEWRIGHT_UNROLL
                for (int n = 0; n < streamed / 8; ++n) {
                    STAGEWRIGHT_UNROLL
                    for (int i = 2 * half; i < 2 * half + 2; ++i) {
                        score[m][n][i] = t.exp2(score[m][n][i] * scale - level);
                        sum += score[m][n][i];
                    }
                }
                total[m][half] = total[m][half] * keep + sum;
                STAGEWRIGHT_UNROLL
                for (int n = 0; n < Width / 8; ++n) {
                    out[m][n][2 * half] *= keep;
                    out[m][n][2 * half + 1] *= keep;
                }
            }
        }
        STAGEWRIGHT_UNROLL
        for (int k = 0; k < streamed / 16; ++k) {
            Quad weight[rowTiles];
            STAGEWRIGHT_UNROLL
            for (int m = 0; m < rowTiles; ++m) weight[m] = leftOfSums(t, score[m][2 * k], score[m][2 * k + 1]);
            STAGEWRIGHT_UNROLL
            for (int n = 0; n < steps; ++n) {
                const Quad value = rightOf<Width>(t, stage(j) + tileBytes<Width>(streamed), 16 * k, 16 * n);
                STAGEWRIGHT_UNROLL
                for (int m = 0; m < rowTiles; ++m) {
                    t.multiplyAdd(out[m][2 * n], weight[m], value.at[0], value.at[1]);
                    t.multiplyAdd(out[m][2 * n + 1], weight[m], value.at[2], value.at[3]);
                }
            }
        }
    }
    if (own >= f.tokens) return; // whole warps
    STAGEWRIGHT_UNROLL
    for (int m = 0; m < rowTiles; ++m) {
        STAGEWRIGHT_UNROLL
        for (int half = 0; half < 2; ++half) {
            float sum = total[m][half];
            sum += t.shuffleXor(sum, 1);
            sum += t.shuffleXor(sum, 2);
            const int r = own + 16 * m + sumRow(t) + 8 * half;
            if (r >= f.tokens) continue;
            storeRow<Width>(t, f, const_cast<std::uint16_t*>(denseRow<Bf16>(f, f.out, at, r)), out[m], half, 1.0F / sum,
                            false);
            if (sumColumn(t) == 0) t.storeFloat(f.sums + at.sums + r, most[m][half] * headScale(f) + logf(sum));
        }
    }
}

// 16×16 scores, which become probabilities, and gradients of the probabilities, which become those of the scores.
struct FlashScores {
    float score[2][4] = {}, slope[2][4] = {};
};

// Queries tile · flashRows …: their gradients.
template <int Width, typename Threads>
STAGEWRIGHT_TILE void flashQueryTile(const Threads& t, const StagewrightFlash& f, int sample, int head, int tile)
{
    constexpr int rowTiles = FlashShape<Width>::rowTiles, streamed = FlashShape<Width>::streamedBack,
                  rows = flashRows<Width>;
    constexpr int steps = Width / 16;
    const HeadPlace at = headPlace(f, sample, head);
    const auto stride = static_cast<std::size_t>(f.stride);
    const std::size_t dense = static_cast<std::size_t>(f.heads) * f.width;
    const auto *keys = headRow<Bf16>(f, f.key, at, 0), *values = headRow<Bf16>(f, f.value, at, 0);
    const int first = tile * rows;
    const int own = first + t.thread() / 32 * 16 * rowTiles;
    const int end = first + rows < f.tokens ? first + rows : f.tokens;
    const int tiles = (end + streamed - 1) / streamed;
    const float scale = headScale(f) * log2OfE;

    const auto stage = [](int j) { return tileBytes<Width>(2 * rows + j % 2 * 2 * streamed); };
    const auto fetch = [&](int j) {
        copyTile<Width, streamed>(t, stage(j), keys, stride, j * streamed, f.tokens, f.width);
        copyTile<Width, streamed>(t, stage(j) + tileBytes<Width>(streamed), values, stride, j * streamed, f.tokens,
                                  f.width);
        t.commitCopies();
    };
    copyTile<Width, rows>(t, 0, headRow<Bf16>(f, f.query, at, 0), stride, first, f.tokens, f.width);
    copyTile<Width, rows>(t, tileBytes<Width>(rows), denseRow<Bf16>(f, f.outGrad, at, 0), dense, first, f.tokens,
                          f.width);
    fetch(0);
    t.waitCopies();
    t.barrier();
    Quad query[rowTiles][steps], grad[rowTiles][steps];
    float level[rowTiles][2], inner[rowTiles][2];
    STAGEWRIGHT_UNROLL
    for (int m = 0; m < rowTiles; ++m) {
        STAGEWRIGHT_UNROLL
        for (int k = 0; k < steps; ++k) {
            query[m][k] = leftOf<Width>(t, 0, own - first + 16 * m, 16 * k);
            grad[m][k] = leftOf<Width>(t, tileBytes<Width>(rows), own - first + 16 * m, 16 * k);
        }
        STAGEWRIGHT_UNROLL
        for (int half = 0; half < 2; ++half) {
            const int r = own + 16 * m + sumRow(t) + 8 * half;
            level[m][half] = r < f.tokens ? t.loadFloat(f.sums + at.sums + r) * log2OfE : 0;
            inner[m][half] = r < f.tokens ? t.loadFloat(f.inner + at.sums + r) : 0;
        }
    }

    float sums[rowTiles][Width / 8][4] = {};
    for (int j = 0; j < tiles; ++j) {
        if (j > 0) {
            t.waitCopies();
            t.barrier();
        }
        if (j + 1 < tiles) fetch(j + 1);
        for (int part = 0; part < streamed / 16; ++part) {
            const int keyFirst = j * streamed + 16 * part;
            if (own >= f.tokens || keyFirst >= own + 16 * rowTiles) break;
            FlashScores s[rowTiles];
            STAGEWRIGHT_UNROLL
            for (int k = 0; k < steps; ++k) {
                const Quad key = rightOfTransposed<Width>(t, stage(j), 16 * part, 16 * k);
                const Quad value =
                    rightOfTransposed<Width>(t, stage(j) + tileBytes<Width>(streamed), 16 * part, 16 * k);
                STAGEWRIGHT_UNROLL
                for (int m = 0; m < rowTiles; ++m) {
                    STAGEWRIGHT_UNROLL
                    for (int n = 0; n < 2; ++n) {
                        t.multiplyAdd(
                            s[m].score[n], query[m][k], key.at[2 * n],
                            key.at[2 * n + 1]); // NOLINT(bugprone-implicit-widening-of-multiplication-result): below 16
                        t.multiplyAdd(
                            s[m].slope[n], grad[m][k], value.at[2 * n],
                            value.at[2 * n +
                                     1]); // NOLINT(bugprone-implicit-widening-of-multiplication-result): below 16
                    }
                }
            }
            Quad slope[rowTiles];
            STAGEWRIGHT_UNROLL
            for (int m = 0; m < rowTiles; ++m) {
                STAGEWRIGHT_UNROLL
                for (int n = 0; n < 2; ++n) {
                    STAGEWRIGHT_UNROLL
                    for (int i = 0; i < 4; ++i) {
                        const bool kept =
                            keyFirst + 8 * n + sumColumn(t) + i % 2 <= own + 16 * m + sumRow(t) + i / 2 * 8;
                        const float probability = kept ? t.exp2(s[m].score[n][i] * scale - level[m][i / 2]) : 0;
                        s[m].slope[n][i] = probability * (s[m].slope[n][i] - inner[m][i / 2]);
                    }
                }
                slope[m] = leftOfSums(t, s[m].slope[0], s[m].slope[1]);
            }
            STAGEWRIGHT_UNROLL
            for (int n = 0; n < steps; ++n) {
                const Quad key = rightOf<Width>(t, stage(j), 16 * part, 16 * n);
                STAGEWRIGHT_UNROLL
                for (int m = 0; m < rowTiles; ++m) {
                    t.multiplyAdd(sums[m][2 * n], slope[m], key.at[0], key.at[1]);
                    t.multiplyAdd(sums[m][2 * n + 1], slope[m], key.at[2], key.at[3]);
                }
            }
        }
    }
    STAGEWRIGHT_UNROLL
    for (int m = 0; m < rowTiles; ++m) {
        STAGEWRIGHT_UNROLL
        for (int half = 0; half < 2; ++half) {
            const int r = own + 16 * m + sumRow(t) + 8 * half;
            if (r >= f.tokens) continue;
            storeRow<Width>(t, f, const_cast<std::uint16_t*>(headRow<Bf16>(f, f.queryGrad, at, r)), sums[m], half,
                            headScale(f), false);
        }
    }
}

// Keys and values tile · flashRows …: their gradients. Everything is transposed, rows are keys: so the probabilities
// are left factors.
template <int Width, typename Threads>
STAGEWRIGHT_TILE void flashKeyTile(const Threads& t, const StagewrightFlash& f, int sample, int head, int tile)
{
    constexpr int rowTiles = FlashShape<Width>::rowTiles, streamed = FlashShape<Width>::streamedBack,
                  rows = flashRows<Width>;
    constexpr int steps = Width / 16;
    const HeadPlace at = headPlace(f, sample, head);
    const auto stride = static_cast<std::size_t>(f.stride);
    const std::size_t dense = static_cast<std::size_t>(f.heads) * f.width;
    const auto *queries = headRow<Bf16>(f, f.query, at, 0), *grads = denseRow<Bf16>(f, f.outGrad, at, 0);
    const int first = tile * rows;
    const int own = first + t.thread() / 32 * 16 * rowTiles;
    const int tiles = (f.tokens + streamed - 1) / streamed;
    const float scale = headScale(f) * log2OfE;

    // A stage: queries, gradients of out, log-sum-exps, inner sums.
    constexpr std::uint32_t numbers = tileBytes<Width>(2 * rows + 4 * streamed);
    const auto stage = [](int j) { return tileBytes<Width>(2 * rows + j % 2 * 2 * streamed); };
    const auto numberAt = [](int j, int query) {
        return numbers + static_cast<std::uint32_t>((j % 2 * 2 * streamed + query) * 4);
    };
    const auto fetch = [&](int j) {
        copyTile<Width, streamed>(t, stage(j), queries, stride, j * streamed, f.tokens, f.width);
        copyTile<Width, streamed>(t, stage(j) + tileBytes<Width>(streamed), grads, dense, j * streamed, f.tokens,
                                  f.width);
        static_assert(2 * streamed <= tileThreads);
        if (t.thread() < 2 * streamed) {
            const float* from = t.thread() < streamed ? f.sums : f.inner;
            const int query = j * streamed + t.thread() % streamed;
            t.copy4(numberAt(j, t.thread()), query < f.tokens ? from + at.sums + query : from, query < f.tokens);
        }
        t.commitCopies();
    };
    copyTile<Width, rows>(t, 0, headRow<Bf16>(f, f.key, at, 0), stride, first, f.tokens, f.width);
    copyTile<Width, rows>(t, tileBytes<Width>(rows), headRow<Bf16>(f, f.value, at, 0), stride, first, f.tokens,
                          f.width);
    const int begin = first / streamed;
    fetch(begin);

    float keySums[rowTiles][Width / 8][4] = {}, valueSums[rowTiles][Width / 8][4] = {};
    for (int j = begin; j < tiles; ++j) {
        t.waitCopies();
        t.barrier();
        if (j + 1 < tiles) fetch(j + 1);
        for (int part = 0; part < streamed / 16; ++part) {
            const int queryFirst = j * streamed + 16 * part;
            if (own >= f.tokens || queryFirst >= f.tokens) break;
            if (queryFirst + 15 < own) continue; // all earlier than the warp's keys
            FlashScores s[rowTiles];
            STAGEWRIGHT_UNROLL
            for (int k = 0; k < steps; ++k) {
                const Quad query = rightOfTransposed<Width>(t, stage(j), 16 * part, 16 * k);
                const Quad grad = rightOfTransposed<Width>(t, stage(j) + tileBytes<Width>(streamed), 16 * part, 16 * k);
                STAGEWRIGHT_UNROLL
                for (int m = 0; m < rowTiles; ++m) {
                    const Quad key = leftOf<Width>(t, 0, own - first + 16 * m, 16 * k);
                    const Quad value = leftOf<Width>(t, tileBytes<Width>(rows), own - first + 16 * m, 16 * k);
                    STAGEWRIGHT_UNROLL
                    for (int n = 0; n < 2; ++n) {
                        t.multiplyAdd(
                            s[m].score[n], key, query.at[2 * n],
                            query.at[2 * n +
                                     1]); // NOLINT(bugprone-implicit-widening-of-multiplication-result): below 16
                        t.multiplyAdd(
                            s[m].slope[n], value, grad.at[2 * n],
                            grad.at[2 * n +
                                    1]); // NOLINT(bugprone-implicit-widening-of-multiplication-result): below 16
                    }
                }
            }
            Quad weight[rowTiles], slope[rowTiles];
            STAGEWRIGHT_UNROLL
            for (int n = 0; n < 2; ++n) {
                STAGEWRIGHT_UNROLL
                for (int i = 0; i < 2; ++i) {
                    const int column = 8 * n + sumColumn(t) + i;
                    const float level = t.sharedFloat(numberAt(j, 16 * part + column)) * log2OfE;
                    const float inner = t.sharedFloat(numberAt(j, streamed + 16 * part + column));
                    STAGEWRIGHT_UNROLL
                    for (int m = 0; m < rowTiles; ++m) {
                        STAGEWRIGHT_UNROLL
                        for (int half = 0; half < 2; ++half) {
                            float& score = s[m].score[n][2 * half + i];
                            float& fall = s[m].slope[n][2 * half + i];
                            const bool kept = own + 16 * m + sumRow(t) + 8 * half <= queryFirst + column &&
                                              queryFirst + column < f.tokens;
                            score = kept ? t.exp2(score * scale - level) : 0;
                            fall = score * (fall - inner);
                        }
                    }
                }
            }
            STAGEWRIGHT_UNROLL
            for (int m = 0; m < rowTiles; ++m) {
                weight[m] = leftOfSums(t, s[m].score[0], s[m].score[1]);
                slope[m] = leftOfSums(t, s[m].slope[0], s[m].slope[1]);
            }
            STAGEWRIGHT_UNROLL
            for (int n = 0; n < steps; ++n) {
                const Quad grad = rightOf<Width>(t, stage(j) + tileBytes<Width>(streamed), 16 * part, 16 * n);
                const Quad query = rightOf<Width>(t, stage(j), 16 * part, 16 * n);
                STAGEWRIGHT_UNROLL
                for (int m = 0; m < rowTiles; ++m) {
                    t.multiplyAdd(valueSums[m][2 * n], weight[m], grad.at[0], grad.at[1]);
                    t.multiplyAdd(valueSums[m][2 * n + 1], weight[m], grad.at[2], grad.at[3]);
                    t.multiplyAdd(keySums[m][2 * n], slope[m], query.at[0], query.at[1]);
                    t.multiplyAdd(keySums[m][2 * n + 1], slope[m], query.at[2], query.at[3]);
                }
            }
        }
    }
    STAGEWRIGHT_UNROLL
    for (int m = 0; m < rowTiles; ++m) {
        STAGEWRIGHT_UNROLL
        for (int half = 0; half < 2; ++half) {
            const int r = own + 16 * m + sumRow(t) + 8 * half;
            if (r >= f.tokens) continue;
            storeRow<Width>(t, f, const_cast<std::uint16_t*>(headRow<Bf16>(f, f.keyGrad, at, r)), keySums[m], half,
                            headScale(f), f.addKeys != 0);
            storeRow<Width>(t, f, const_cast<std::uint16_t*>(headRow<Bf16>(f, f.valueGrad, at, r)), valueSums[m], half,
                            1.0F, f.addKeys != 0);
        }
    }
}

} // namespace stagewright::cuda
