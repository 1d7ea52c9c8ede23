// What the kernels compute, written once: the module compiles it for GPUs, the fake device for the host. A body works
// on one row, column or range with `Lanes`: threads of a block that each take every count()-th element from index() on,
// and that add up or take the largest of their numbers together. On the host there is one lane. Sums have a fixed
// shape, so that the same input gives the same bits on every call. Elements are fp32 or bf16 (Fp32, Bf16); all
// arithmetic is fp32.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "engine/cuda/module_abi.h"

#ifdef __CUDACC__
#define STAGEWRIGHT_BOTH __host__ __device__
#else
#define STAGEWRIGHT_BOTH
#endif
#ifdef __CUDA_ARCH__
#define STAGEWRIGHT_UNROLL _Pragma("unroll")
#else
#define STAGEWRIGHT_UNROLL
#endif

namespace stagewright::cuda {

STAGEWRIGHT_BOTH inline float floatOf(std::uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
STAGEWRIGHT_BOTH inline std::uint32_t bitsOf(float value)
{
    std::uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

// Each type also has what packs it: `inWord` elements are a word of 32 bits, the first in its lowest bits, that
// `opened` takes them from and `word` makes of them; e^x and 1/x as exactly as the type needs them.
struct Fp32 {
    using Stored = float;
    static constexpr int wide = 4; // elements of 16 bytes
    static constexpr int inWord = 1;
    STAGEWRIGHT_BOTH static float load(const float* x, std::size_t i) { return x[i]; }
    STAGEWRIGHT_BOTH static void store(float* x, std::size_t i, float value) { x[i] = value; }
    STAGEWRIGHT_BOTH static float opened(std::uint32_t word, int) { return floatOf(word); }
    STAGEWRIGHT_BOTH static std::uint32_t word(const float* values) { return bitsOf(values[0]); }
    STAGEWRIGHT_BOTH static float exponential(float x) { return expf(x); }
    STAGEWRIGHT_BOTH static float inverse(float x) { return 1.0F / x; }
};

// Round to nearest even; NaN stays.
struct Bf16 {
    using Stored = std::uint16_t;
    static constexpr int wide = 8;
    static constexpr int inWord = 2;
    STAGEWRIGHT_BOTH static float load(const std::uint16_t* x, std::size_t i) { return opened(x[i], 0); }
    STAGEWRIGHT_BOTH static void store(std::uint16_t* x, std::size_t i, float value)
    {
        x[i] = static_cast<std::uint16_t>(pair(value, 0.0F));
    }
    STAGEWRIGHT_BOTH static float opened(std::uint32_t word, int k)
    {
        return floatOf(k == 0 ? word << 16 : word & 0xffff0000U);
    }
    STAGEWRIGHT_BOTH static std::uint32_t word(const float* values) { return pair(values[0], values[1]); }
    STAGEWRIGHT_BOTH static std::uint32_t pair(float first, float second)
    {
#ifdef __CUDA_ARCH__
        std::uint32_t both;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
        return both;
#else
        return rounded(first) | rounded(second) << 16;
#endif
    }
    // A GPU's fast ones are off by some 1e-6, bf16 by 4e-3.
#ifdef __CUDA_ARCH__
    __device__ static float exponential(float x) { return __expf(x); }
    __device__ static float inverse(float x) { return __fdividef(1.0F, x); }
#else
    STAGEWRIGHT_BOTH static float exponential(float x) { return expf(x); }
    STAGEWRIGHT_BOTH static float inverse(float x) { return 1.0F / x; }
#endif

private:
    STAGEWRIGHT_BOTH static std::uint32_t rounded(float value)
    {
        const std::uint32_t bits = bitsOf(value);
        const bool nan = (bits & 0x7fffffffU) > 0x7f800000U;
        return nan ? 0x7fc0U : (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
    }
};

struct OneLane {
    static constexpr int headPerLane = 128; // numbers of a head's row that a lane holds
    STAGEWRIGHT_BOTH int index() const { return 0; }
    STAGEWRIGHT_BOTH int count() const { return 1; }
    STAGEWRIGHT_BOTH float sum(float x) const { return x; }
    STAGEWRIGHT_BOTH float largest(float x) const { return x; }
    STAGEWRIGHT_BOTH double sum(double x) const { return x; }
    STAGEWRIGHT_BOTH void sumBoth(float (&)[2]) const {}
};

template <typename E>
STAGEWRIGHT_BOTH const typename E::Stored* row(const void* base, std::size_t at)
{
    return static_cast<const typename E::Stored*>(base) + at;
}
template <typename E>
STAGEWRIGHT_BOTH typename E::Stored* row(void* base, std::size_t at)
{
    return static_cast<typename E::Stored*>(base) + at;
}

// N neighbouring elements as they are stored: one, or the 8 or 16 bytes that a GPU moves with one access, from a place
// that divides by them.
template <typename E, int N>
struct Packed {
    static constexpr int words = N / E::inWord;
    static_assert(N % E::inWord == 0 && (words == 2 || words == 4));
    std::uint32_t word[words];

    STAGEWRIGHT_BOTH static Packed load(const typename E::Stored* x, std::size_t i)
    {
        Packed packed;
#ifdef __CUDA_ARCH__
        if constexpr (words == 4) {
            const uint4 raw = *reinterpret_cast<const uint4*>(x + i);
            packed = {{raw.x, raw.y, raw.z, raw.w}};
        } else {
            const uint2 raw = *reinterpret_cast<const uint2*>(x + i);
            packed = {{raw.x, raw.y}};
        }
#else
        memcpy(packed.word, x + i, sizeof packed.word);
#endif
        return packed;
    }
    STAGEWRIGHT_BOTH void store(typename E::Stored* x, std::size_t i) const
    {
#ifdef __CUDA_ARCH__
        if constexpr (words == 4)
            *reinterpret_cast<uint4*>(x + i) = make_uint4(word[0], word[1], word[2], word[3]);
        else
            *reinterpret_cast<uint2*>(x + i) = make_uint2(word[0], word[1]);
#else
        memcpy(x + i, word, sizeof word);
#endif
    }
    STAGEWRIGHT_BOTH float at(int k) const { return E::opened(word[k / E::inWord], k % E::inWord); }
    STAGEWRIGHT_BOTH static Packed of(const float (&values)[N])
    {
        Packed packed;
        STAGEWRIGHT_UNROLL
        for (int w = 0; w < words; ++w) packed.word[w] = E::word(values + w * E::inWord);
        return packed;
    }
};
template <typename E>
struct Packed<E, 1> {
    typename E::Stored one;

    STAGEWRIGHT_BOTH static Packed load(const typename E::Stored* x, std::size_t i) { return {x[i]}; }
    STAGEWRIGHT_BOTH void store(typename E::Stored* x, std::size_t i) const { x[i] = one; }
    STAGEWRIGHT_BOTH float at(int) const { return E::load(&one, 0); }
    STAGEWRIGHT_BOTH static Packed of(const float (&values)[1])
    {
        Packed packed;
        E::store(&packed.one, 0, values[0]);
        return packed;
    }
};

// The same as floats.
template <typename E, int N>
struct Piece {
    float at[N];

    STAGEWRIGHT_BOTH static Piece of(const Packed<E, N>& packed)
    {
        Piece piece;
        STAGEWRIGHT_UNROLL
        for (int k = 0; k < N; ++k) piece.at[k] = packed.at(k);
        return piece;
    }
    STAGEWRIGHT_BOTH static Piece load(const typename E::Stored* x, std::size_t i)
    {
        return of(Packed<E, N>::load(x, i));
    }
    // What is stored is returned, as load() finds it.
    STAGEWRIGHT_BOTH Piece store(typename E::Stored* x, std::size_t i) const
    {
        const auto packed = Packed<E, N>::of(at);
        packed.store(x, i);
        return of(packed);
    }
};
// Whether rows of `width` elements at these places (null: none) fall into pieces of 16 bytes.
template <typename E, typename... Places>
STAGEWRIGHT_BOTH bool inPieces(std::size_t width, const Places*... places)
{
    return width % E::wide == 0 && ((reinterpret_cast<std::uintptr_t>(places) % 16 == 0) && ...);
}

// The lanes' pieces of N elements of a row, one after the other: visit(number among a lane's, first element). Held: how
// many a lane may have, so that each has registers of its own (KeptRow); 0: any number, loaded again by every pass.
template <int N, int Held, typename Lanes, typename Visit>
STAGEWRIGHT_BOTH void eachPiece(const Lanes& lanes, int width, Visit&& visit)
{
    const int from = lanes.index() * N, step = lanes.count() * N;
    if constexpr (Held == 0) {
        for (int i = from, h = 0; i < width; i += step, ++h) visit(h, i);
    } else {
        STAGEWRIGHT_UNROLL
        for (int h = 0; h < Held; ++h)
            if (from + h * step < width) visit(h, from + h * step);
    }
}
template <typename E, int N, int Held>
struct KeptRow {
    const typename E::Stored* x;
    Packed<E, N> kept[Held == 0 ? 1 : Held];

    STAGEWRIGHT_BOTH void take(int h, int i)
    {
        if constexpr (Held != 0) kept[h] = Packed<E, N>::load(x, i);
    }
    STAGEWRIGHT_BOTH Piece<E, N> at(int h, int i) const
    {
        if constexpr (Held != 0)
            return Piece<E, N>::of(kept[h]);
        else
            return Piece<E, N>::load(x, i);
    }
};
// launch(std::integral_constant<int, Held>) for rows of that width: 0 where they have no pieces of 16 bytes, or too
// many for registers.
template <typename E, typename Launch>
void byHeld(bool pieces, int width, int lanes, Launch&& launch)
{
    const int each = pieces ? (width / E::wide + lanes - 1) / lanes : 9;
    if (each <= 1)
        launch(std::integral_constant<int, 1>());
    else if (each <= 2)
        launch(std::integral_constant<int, 2>());
    else if (each <= 4)
        launch(std::integral_constant<int, 4>());
    else if (each <= 8)
        launch(std::integral_constant<int, 8>());
    else
        launch(std::integral_constant<int, 0>());
}

template <typename E>
STAGEWRIGHT_BOTH bool normInPieces(const StagewrightNorm& n)
{
    const auto* x = static_cast<const void*>(n.x); // one type for all places
    return inPieces<E>(static_cast<std::size_t>(n.width), x, n.bias, n.gamma, n.beta,
                       static_cast<const void*>(n.normal), static_cast<const void*>(n.out));
}
template <typename E>
STAGEWRIGHT_BOTH bool normBackwardInPieces(const StagewrightNorm& n)
{
    return inPieces<E>(static_cast<std::size_t>(n.width), n.outGrad, n.residual, n.gamma,
                       static_cast<const void*>(n.normal), static_cast<const void*>(n.inputGrad));
}

template <typename E, int N, int Held, typename Lanes>
STAGEWRIGHT_BOTH void normRowBy(const Lanes& lanes, const StagewrightNorm& n, std::size_t r)
{
    const std::size_t first = r * static_cast<std::size_t>(n.width);
    auto* x = row<E>(n.x, first);
    auto* normal = row<E>(n.normal, first);
    auto* out = row<E>(n.out, first);
    const auto *gamma = row<E>(n.gamma, 0), *beta = row<E>(n.beta, 0), *bias = row<E>(n.bias, 0);
    using P = Piece<E, N>;
    const float perWidth = 1.0F / static_cast<float>(n.width);
    KeptRow<E, N, Held> line{x, {}};
    eachPiece<N, Held>(lanes, n.width, [&](int h, int i) { line.take(h, i); });
    float sum = 0;
    eachPiece<N, Held>(lanes, n.width, [&](int h, int i) {
        const P in = line.at(h, i);
        for (int k = 0; k < N; ++k) sum += in.at[k];
    });
    const float mean = lanes.sum(sum) * perWidth;
    float squares = 0;
    eachPiece<N, Held>(lanes, n.width, [&](int h, int i) {
        const P in = line.at(h, i);
        for (int k = 0; k < N; ++k) squares += (in.at[k] - mean) * (in.at[k] - mean);
    });
    const float scale = 1.0F / sqrtf(lanes.sum(squares) * perWidth + 1e-5F);
    if (lanes.index() == 0) n.deviation[r] = scale;
    eachPiece<N, Held>(lanes, n.width, [&](int h, int i) {
        P in = line.at(h, i), made;
        for (int k = 0; k < N; ++k) made.at[k] = (in.at[k] - mean) * scale;
        made = made.store(normal, i); // what is kept, from which W computes `out` again
        const P factor = P::load(gamma, i), shift = P::load(beta, i);
        for (int k = 0; k < N; ++k) made.at[k] = made.at[k] * factor.at[k] + shift.at[k];
        made.store(out, i);
        if (!n.bias) return;
        const P more = P::load(bias, i);
        for (int k = 0; k < N; ++k) in.at[k] += more.at[k];
        in.store(x, i);
    });
}
// Held: as byHeld() has it for this norm; 0 always does.
template <typename E, int Held = 0, typename Lanes>
STAGEWRIGHT_BOTH void normRow(const Lanes& lanes, const StagewrightNorm& n, std::size_t r)
{
    if (Held != 0 || normInPieces<E>(n))
        normRowBy<E, E::wide, Held>(lanes, n, r);
    else
        normRowBy<E, 1, 0>(lanes, n, r);
}

template <typename E, int N, typename Lanes>
STAGEWRIGHT_BOTH void scaleShiftRow(const Lanes& lanes, const StagewrightNorm& n, std::size_t r)
{
    using P = Piece<E, N>;
    const std::size_t first = r * static_cast<std::size_t>(n.width);
    const auto* normal = row<E>(static_cast<const void*>(n.normal), first);
    const auto *gamma = row<E>(n.gamma, 0), *beta = row<E>(n.beta, 0);
    auto* out = row<E>(n.out, first);
    eachPiece<N, 0>(lanes, n.width, [&](int, int i) {
        P made = P::load(normal, i);
        const P factor = P::load(gamma, i), shift = P::load(beta, i);
        for (int k = 0; k < N; ++k) made.at[k] = made.at[k] * factor.at[k] + shift.at[k];
        made.store(out, i);
    });
}
template <typename E>
bool scaleShiftsInPieces(const StagewrightNorm& n)
{
    return inPieces<E>(static_cast<std::size_t>(n.width), static_cast<const void*>(n.normal), n.gamma, n.beta,
                       static_cast<const void*>(n.out));
}

template <typename E, int N, int Held, typename Lanes>
STAGEWRIGHT_BOTH void normBackwardRowBy(const Lanes& lanes, const StagewrightNorm& n, std::size_t r)
{
    const std::size_t first = r * static_cast<std::size_t>(n.width);
    const auto* gamma = row<E>(n.gamma, 0);
    auto* to = row<E>(n.inputGrad, first);
    using P = Piece<E, N>;
    KeptRow<E, N, Held> gradients{row<E>(n.outGrad, first), {}};
    KeptRow<E, N, Held> normals{row<E>(static_cast<const void*>(n.normal), first), {}};
    KeptRow<E, N, Held <= 4 ? Held : 0> around{row<E>(n.residual, first), {}};
    const float scale = n.deviation[r];
    const float perWidth = 1.0F / static_cast<float>(n.width);
    eachPiece<N, Held>(lanes, n.width, [&](int h, int i) {
        gradients.take(h, i);
        normals.take(h, i);
        if (n.residual) around.take(h, i);
    });
    float means[2] = {}; // of the gradients of `normal`, and of their GEMMs with it
    eachPiece<N, Held>(lanes, n.width, [&](int h, int i) {
        const P grad = gradients.at(h, i), factor = P::load(gamma, i), normal = normals.at(h, i);
        for (int k = 0; k < N; ++k) {
            means[0] += grad.at[k] * factor.at[k];
            means[1] += grad.at[k] * factor.at[k] * normal.at[k];
        }
    });
    lanes.sumBoth(means);
    const float meanGrad = means[0] * perWidth;
    const float meanProduct = means[1] * perWidth;
    eachPiece<N, Held>(lanes, n.width, [&](int h, int i) {
        P grad = gradients.at(h, i);
        const P factor = P::load(gamma, i), normal = normals.at(h, i);
        for (int k = 0; k < N; ++k)
            grad.at[k] = scale * (grad.at[k] * factor.at[k] - meanGrad - normal.at[k] * meanProduct);
        if (n.residual) {
            const P more = around.at(h, i);
            for (int k = 0; k < N; ++k) grad.at[k] += more.at[k];
        }
        grad.store(to, i);
    });
}
template <typename E, int Held = 0, typename Lanes>
STAGEWRIGHT_BOTH void normBackwardRow(const Lanes& lanes, const StagewrightNorm& n, std::size_t r)
{
    if (Held != 0 || normBackwardInPieces<E>(n))
        normBackwardRowBy<E, E::wide, Held>(lanes, n, r);
    else
        normBackwardRowBy<E, 1, 0>(lanes, n, r);
}

// GELU, tanh form: 0.5 x (1 + tanh u) = x · sigmoid(2u), u = sqrt(2/π) (x + 0.044715 x³).
inline constexpr float geluSteep = 2.0F * 0.797884561F, geluCubic = 0.044715F;
template <typename E>
STAGEWRIGHT_BOTH float geluGate(float x)
{
    return E::inverse(1.0F + E::exponential(-geluSteep * x * (1.0F + geluCubic * x * x)));
}
template <typename E>
STAGEWRIGHT_BOTH float geluOf(float x)
{
    return x * geluGate<E>(x);
}
struct GeluPoint {
    float value, slope;
};
template <typename E>
STAGEWRIGHT_BOTH GeluPoint geluAt(float x)
{
    const float gate = geluGate<E>(x);
    const float value = x * gate;
    return {value, gate + value * (1.0F - gate) * (geluSteep * (1.0F + 3.0F * geluCubic * x * x))};
}

template <typename E, typename Lanes>
STAGEWRIGHT_BOTH void softmaxRow(const Lanes& lanes, const StagewrightSoftmax& s, int block, int r)
{
    auto* line =
        row<E>(s.scores, static_cast<std::size_t>(block) * s.blockStride + static_cast<std::size_t>(r) * s.columns);
    const int kept = s.past + r + 1;
    float most = -INFINITY;
    for (int i = lanes.index(); i < kept; i += lanes.count()) most = fmaxf(most, E::load(line, i));
    most = lanes.largest(most);
    float sum = 0;
    for (int i = lanes.index(); i < kept; i += lanes.count()) sum += expf(E::load(line, i) - most);
    const float scale = 1.0F / lanes.sum(sum);
    for (int i = lanes.index(); i < s.columns; i += lanes.count())
        E::store(line, i, i < kept ? expf(E::load(line, i) - most) * scale : 0.0F);
}

template <typename E, typename Lanes>
STAGEWRIGHT_BOTH void softmaxBackwardRow(const Lanes& lanes, const StagewrightSoftmax& s, int block, int r)
{
    const std::size_t at = static_cast<std::size_t>(block) * s.blockStride + static_cast<std::size_t>(r) * s.columns;
    const auto* p = row<E>(static_cast<const void*>(s.scores), at);
    auto* grad = row<E>(s.gradient, at);
    const int kept = s.past + r + 1;
    float inner = 0;
    for (int i = lanes.index(); i < kept; i += lanes.count()) inner += E::load(p, i) * E::load(grad, i);
    inner = lanes.sum(inner);
    for (int i = lanes.index(); i < s.columns; i += lanes.count())
        E::store(grad, i, i < kept ? E::load(p, i) * (E::load(grad, i) - inner) : 0.0F);
}

template <typename E, typename Lanes>
STAGEWRIGHT_BOTH void crossEntropyRow(const Lanes& lanes, int vocabulary, void* logits, int target, float* rowLoss,
                                      std::size_t r)
{
    auto* line = row<E>(logits, r * static_cast<std::size_t>(vocabulary));
    float most = -INFINITY;
    for (int i = lanes.index(); i < vocabulary; i += lanes.count()) most = fmaxf(most, E::load(line, i));
    most = lanes.largest(most);
    float sum = 0;
    float own = 0;
    for (int i = lanes.index(); i < vocabulary; i += lanes.count()) {
        sum += expf(E::load(line, i) - most);
        if (i == target) own = E::load(line, i) - most;
    }
    sum = lanes.sum(sum);
    own = lanes.sum(own); // of one lane
    if (lanes.index() == 0) rowLoss[r] = logf(sum) - own;
    const float scale = 1.0F / sum;
    for (int i = lanes.index(); i < vocabulary; i += lanes.count())
        E::store(line, i, expf(E::load(line, i) - most) * scale - (i == target ? 1.0F : 0.0F));
}

template <typename Lanes>
STAGEWRIGHT_BOTH void meanLoss(const Lanes& lanes, int rows, const float* rowLoss, double* loss)
{
    double sum = 0;
    for (int r = lanes.index(); r < rows; r += lanes.count()) sum += static_cast<double>(rowLoss[r]);
    sum = lanes.sum(sum);
    if (lanes.index() == 0) *loss = sum / rows;
}

template <typename E, int N, typename Lanes>
STAGEWRIGHT_BOTH void embedRow(const Lanes& lanes, const StagewrightEmbedding& e, int r)
{
    const auto width = static_cast<std::size_t>(e.width);
    const auto* token = row<E>(e.tokenTable, e.bytes[r] * width);
    const auto* position = row<E>(e.positionTable, static_cast<std::size_t>(e.past + r % e.tokens) * width);
    auto* out = row<E>(e.out, static_cast<std::size_t>(r) * width);
    eachPiece<N, 0>(lanes, e.width, [&](int, int i) {
        auto made = Piece<E, N>::load(token, i);
        const auto more = Piece<E, N>::load(position, i);
        for (int k = 0; k < N; ++k) made.at[k] += more.at[k];
        made.store(out, i);
    });
}
template <typename E>
bool embedsInPieces(const StagewrightEmbedding& e)
{
    return inPieces<E>(static_cast<std::size_t>(e.width), e.tokenTable, e.positionTable,
                       static_cast<const void*>(e.out));
}
// Elements i … i + N of the gradients of the positions' table, (tokens, width): samples in order.
template <typename E, int N>
STAGEWRIGHT_BOTH void positionGradAt(const StagewrightEmbedding& e, std::size_t i)
{
    const std::size_t all = static_cast<std::size_t>(e.tokens) * e.width;
    float* to = e.positionGrad + static_cast<std::size_t>(e.past) * e.width + i;
    float sums[N] = {};
    for (int sample = 0; sample < e.batch; ++sample) {
        const auto grad = Piece<E, N>::load(row<E>(e.outGrad, 0), sample * all + i);
        for (int k = 0; k < N; ++k) sums[k] += grad.at[k];
    }
    constexpr int floats = N == 1 ? 1 : Fp32::wide;
    for (int k = 0; k < N; k += floats) {
        auto sum = Piece<Fp32, floats>::load(to, k);
        for (int j = 0; j < floats; ++j) sum.at[j] += sums[k + j];
        sum.store(to, k);
    }
}
template <typename E>
bool positionGradsInPieces(const StagewrightEmbedding& e)
{
    return inPieces<E>(static_cast<std::size_t>(e.width), e.outGrad, static_cast<const void*>(e.positionGrad));
}

// A lane's share of the sum of squares, in eight sums, from as many loads on their way at once.
template <int N, typename Lanes>
STAGEWRIGHT_BOTH double ownSquaresBy(const Lanes& lanes, std::size_t count, const float* x)
{
    constexpr int sums = 8;
    using P = Packed<Fp32, N>;
    const std::size_t pieces = count / N;
    const auto step = static_cast<std::size_t>(lanes.count());
    double sum[sums] = {};
    P loaded[sums];
    const auto addSquares = [&] {
        STAGEWRIGHT_UNROLL
        for (int j = 0; j < sums; ++j) {
            STAGEWRIGHT_UNROLL
            for (int k = 0; k < N; ++k) {
                const double value = loaded[j].at(k);
                sum[(j * N + k) % sums] += value * value;
            }
        }
    };
    std::size_t at = static_cast<std::size_t>(lanes.index());
    for (; at + (sums - 1) * step < pieces; at += sums * step) {
        STAGEWRIGHT_UNROLL
        for (int j = 0; j < sums; ++j) loaded[j] = P::load(x, (at + j * step) * N);
        addSquares();
    }
    STAGEWRIGHT_UNROLL
    for (int j = 0; j < sums; ++j) loaded[j] = at + j * step < pieces ? P::load(x, (at + j * step) * N) : P{};
    addSquares();
    for (std::size_t i = pieces * N + static_cast<std::size_t>(lanes.index()); i < count; i += step) {
        const double value = x[i];
        sum[0] += value * value;
    }
    double all = 0;
    for (const double part : sum) all += part;
    return all;
}
template <typename Lanes>
STAGEWRIGHT_BOTH double ownSquares(const Lanes& lanes, std::size_t count, const float* x)
{
    return inPieces<Fp32>(Fp32::wide, x) ? ownSquaresBy<Fp32::wide>(lanes, count, x) : ownSquaresBy<1>(lanes, count, x);
}

// Four numbers of a tensor, from i on, are a thread's: visit(std::integral_constant<int, N>, element) for pieces of N
// of them. A piece of four floats starts at 16 bytes in all of the tensor's places; four elements of E in half of that,
// where they are narrower.
inline constexpr int numbersOfThread = 4;
template <typename E, typename Visit>
STAGEWRIGHT_BOTH void eachOfFour(const StagewrightTensor& t, std::size_t i, Visit&& visit)
{
    const auto places = reinterpret_cast<std::uintptr_t>(t.value) | reinterpret_cast<std::uintptr_t>(t.gradient) |
                        reinterpret_cast<std::uintptr_t>(t.moment1) | reinterpret_cast<std::uintptr_t>(t.moment2);
    const auto used = reinterpret_cast<std::uintptr_t>(t.used);
    if (i + numbersOfThread <= t.count && places % 16 == 0 &&
        used % (numbersOfThread * sizeof(typename E::Stored)) == 0) {
        visit(std::integral_constant<int, numbersOfThread>(), i);
        return;
    }
    for (std::size_t end = i + numbersOfThread; i < end && i < t.count; ++i) visit(std::integral_constant<int, 1>(), i);
}

STAGEWRIGHT_BOTH inline void addFour(const StagewrightTensor& t, std::size_t i)
{
    eachOfFour<Fp32>(t, i, [&t](auto pieces, std::size_t at) {
        constexpr int N = decltype(pieces)::value;
        using P = Piece<Fp32, N>;
        P sum = P::load(t.value, at);
        const P more = P::load(t.gradient, at);
        for (int k = 0; k < N; ++k) sum.at[k] += more.at[k];
        sum.store(t.value, at);
    });
}

// The optimizers as engine/cpu/kernels_body.h has them: a number's next value; its moments are changed in place.
template <int kind>
STAGEWRIGHT_BOTH float nextValue(const StagewrightStep& s, const StagewrightTensor& t, float grad, float value,
                                 float& moment1, float& moment2)
{
    if constexpr (kind == STAGEWRIGHT_ADAMW) {
        moment1 = s.beta1 * moment1 + (1.0F - s.beta1) * grad;
        moment2 = s.beta2 * moment2 + (1.0F - s.beta2) * grad * grad;
        return value * (1.0F - s.learningRate * s.weightDecay) -
               s.learningRate * s.correction1 * moment1 / (sqrtf(moment2 * s.correction2) + s.epsilon);
    } else if constexpr (kind == STAGEWRIGHT_UNDO_ADAMW) {
        const float next =
            (value + s.learningRate * s.correction1 * moment1 / (sqrtf(moment2 * s.correction2) + s.epsilon)) *
            (1.0F / (1.0F - s.learningRate * s.weightDecay));
        moment1 = (moment1 - (1.0F - s.beta1) * grad) * (1.0F / s.beta1);
        const float square = (moment2 - (1.0F - s.beta2) * grad * grad) * (1.0F / s.beta2);
        moment2 = square < 0.0F ? 0.0F : square; // rounding below zero would make the next root a NaN
        return next;
    } else if constexpr (kind == STAGEWRIGHT_SGD) {
        const float whole = grad + s.weightDecay * value;
        const float velocity = t.moment1 ? s.momentum * moment1 + whole : whole;
        moment1 = velocity;
        return value - s.learningRate * velocity;
    } else if constexpr (kind == STAGEWRIGHT_UNDO_SGD) {
        if (!t.moment1) return (value + s.learningRate * grad) * (1.0F / (1.0F - s.learningRate * s.weightDecay));
        const float next = value + s.learningRate * moment1;
        const float back = s.momentum == 0.0F ? 0.0F : 1.0F / s.momentum;
        moment1 = (moment1 - grad - s.weightDecay * next) * back;
        return next;
    } else if constexpr (kind == STAGEWRIGHT_SCALE) {
        return value * s.gradientScale;
    } else {
        static_assert(kind == STAGEWRIGHT_PREDICT);
        return t.moment2 ? value - s.reach * s.correction1 * moment1 / (sqrtf(moment2 * s.correction2) + s.epsilon)
                         : value - s.reach * moment1;
    }
}
template <typename E, int kind, int N>
STAGEWRIGHT_BOTH void stepPiece(const StagewrightStep& s, const StagewrightTensor& t, std::size_t i)
{
    constexpr bool keepsMoments = kind == STAGEWRIGHT_SCALE || kind == STAGEWRIGHT_PREDICT;
    using P = Piece<Fp32, N>;
    P value = P::load(t.value, i), gradient{}, moment1{}, moment2{};
    if (t.gradient) gradient = P::load(t.gradient, i);
    if (t.moment1) moment1 = P::load(t.moment1, i);
    if (t.moment2) moment2 = P::load(t.moment2, i);
    STAGEWRIGHT_UNROLL
    for (int k = 0; k < N; ++k) {
        const float grad = t.gradient ? gradient.at[k] * s.gradientScale : 0.0F;
        value.at[k] = nextValue<kind>(s, t, grad, value.at[k], moment1.at[k], moment2.at[k]);
    }
    if (kind != STAGEWRIGHT_PREDICT) value.store(t.value, i);
    if (!keepsMoments && t.moment1) moment1.store(t.moment1, i);
    if (!keepsMoments && t.moment2) moment2.store(t.moment2, i);
    if (t.used) Packed<E, N>::of(value.at).store(row<E>(t.used, 0), i);
}
template <typename E>
STAGEWRIGHT_BOTH void stepFour(int kind, const StagewrightStep& s, const StagewrightTensor& t, std::size_t i)
{
    eachOfFour<E>(t, i, [kind, &s, &t](auto pieces, std::size_t at) {
        constexpr int N = decltype(pieces)::value;
        switch (kind) {
        case STAGEWRIGHT_ADAMW: return stepPiece<E, STAGEWRIGHT_ADAMW, N>(s, t, at);
        case STAGEWRIGHT_UNDO_ADAMW: return stepPiece<E, STAGEWRIGHT_UNDO_ADAMW, N>(s, t, at);
        case STAGEWRIGHT_SGD: return stepPiece<E, STAGEWRIGHT_SGD, N>(s, t, at);
        case STAGEWRIGHT_UNDO_SGD: return stepPiece<E, STAGEWRIGHT_UNDO_SGD, N>(s, t, at);
        case STAGEWRIGHT_SCALE: return stepPiece<E, STAGEWRIGHT_SCALE, N>(s, t, at);
        default: return stepPiece<E, STAGEWRIGHT_PREDICT, N>(s, t, at);
        }
    });
}

// Attention of whole sequences that keeps no probabilities (FlashAttention, arXiv 2205.14135): a row's softmax is made
// while its keys stream by, and recomputed from the kept log-sum-exp in the backward. Every row of an output is one set
// of lanes' own.
struct HeadPlace {
    std::size_t head;   // column of the head in a row
    std::size_t sample; // first row of the sample
    std::size_t sums;   // of the head's log-sum-exps
};
STAGEWRIGHT_BOTH inline HeadPlace headPlace(const StagewrightFlash& f, int sample, int head)
{
    return {static_cast<std::size_t>(head) * f.width, static_cast<std::size_t>(sample) * f.tokens,
            (static_cast<std::size_t>(sample) * f.heads + head) * f.tokens};
}
template <typename E>
STAGEWRIGHT_BOTH const typename E::Stored* headRow(const StagewrightFlash& f, const void* base, const HeadPlace& at,
                                                   int r)
{
    return row<E>(base, (at.sample + r) * static_cast<std::size_t>(f.stride) + at.head);
}
template <typename E>
STAGEWRIGHT_BOTH const typename E::Stored* denseRow(const StagewrightFlash& f, const void* base, const HeadPlace& at,
                                                    int r)
{
    return row<E>(base, (at.sample + r) * static_cast<std::size_t>(f.heads) * f.width + at.head);
}
template <typename E, typename Lanes>
STAGEWRIGHT_BOTH float dot(const Lanes& lanes, int width, const typename E::Stored* a, const typename E::Stored* b)
{
    float sum = 0;
    for (int i = lanes.index(); i < width; i += lanes.count()) sum += E::load(a, i) * E::load(b, i);
    return lanes.sum(sum);
}
STAGEWRIGHT_BOTH inline float headScale(const StagewrightFlash& f) { return 1.0F / sqrtf(static_cast<float>(f.width)); }

template <typename E, typename Lanes>
STAGEWRIGHT_BOTH void flashRow(const Lanes& lanes, const StagewrightFlash& f, int sample, int head, int r)
{
    const HeadPlace at = headPlace(f, sample, head);
    const auto* query = headRow<E>(f, f.query, at, r);
    float sums[Lanes::headPerLane] = {};
    float most = -INFINITY;
    float total = 0;
    for (int j = 0; j <= r; ++j) {
        const float score = dot<E>(lanes, f.width, query, headRow<E>(f, f.key, at, j)) * headScale(f);
        const float next = fmaxf(most, score);
        const float keep = expf(most - next);
        const float weight = expf(score - next);
        const auto* value = headRow<E>(f, f.value, at, j);
        total = total * keep + weight;
        for (int i = lanes.index(), k = 0; i < f.width; i += lanes.count(), ++k)
            sums[k] = sums[k] * keep + weight * E::load(value, i);
        most = next;
    }
    auto* out = const_cast<typename E::Stored*>(denseRow<E>(f, f.out, at, r));
    for (int i = lanes.index(), k = 0; i < f.width; i += lanes.count(), ++k) E::store(out, i, sums[k] / total);
    if (lanes.index() == 0) f.sums[at.sums + r] = most + logf(total);
}

template <typename E, typename Lanes>
STAGEWRIGHT_BOTH void flashInnerRow(const Lanes& lanes, const StagewrightFlash& f, int sample, int head, int r)
{
    const HeadPlace at = headPlace(f, sample, head);
    const float inner = dot<E>(lanes, f.width, denseRow<E>(f, f.outGrad, at, r), denseRow<E>(f, f.out, at, r));
    if (lanes.index() == 0) f.inner[at.sums + r] = inner;
}

// Probability, and gradient of the score, of query r and key j.
struct FlashPair {
    float probability;
    float scoreGrad;
};
template <typename E, typename Lanes>
STAGEWRIGHT_BOTH FlashPair flashPair(const Lanes& lanes, const StagewrightFlash& f, const HeadPlace& at, int r, int j)
{
    const float score =
        dot<E>(lanes, f.width, headRow<E>(f, f.query, at, r), headRow<E>(f, f.key, at, j)) * headScale(f);
    const float probability = expf(score - f.sums[at.sums + r]);
    const float grad = dot<E>(lanes, f.width, denseRow<E>(f, f.outGrad, at, r), headRow<E>(f, f.value, at, j));
    return {probability, probability * (grad - f.inner[at.sums + r])};
}

template <typename E, typename Lanes>
STAGEWRIGHT_BOTH void flashQueryRow(const Lanes& lanes, const StagewrightFlash& f, int sample, int head, int r)
{
    const HeadPlace at = headPlace(f, sample, head);
    float sums[Lanes::headPerLane] = {};
    for (int j = 0; j <= r; ++j) {
        const FlashPair pair = flashPair<E>(lanes, f, at, r, j);
        const auto* key = headRow<E>(f, f.key, at, j);
        for (int i = lanes.index(), k = 0; i < f.width; i += lanes.count(), ++k)
            sums[k] += pair.scoreGrad * E::load(key, i);
    }
    auto* to = const_cast<typename E::Stored*>(headRow<E>(f, f.queryGrad, at, r));
    for (int i = lanes.index(), k = 0; i < f.width; i += lanes.count(), ++k) E::store(to, i, sums[k] * headScale(f));
}

template <typename E, typename Lanes>
STAGEWRIGHT_BOTH void flashKeyRow(const Lanes& lanes, const StagewrightFlash& f, int sample, int head, int j)
{
    const HeadPlace at = headPlace(f, sample, head);
    float keys[Lanes::headPerLane] = {};
    float values[Lanes::headPerLane] = {};
    for (int r = j; r < f.tokens; ++r) {
        const FlashPair pair = flashPair<E>(lanes, f, at, r, j);
        const auto* query = headRow<E>(f, f.query, at, r);
        const auto* grad = denseRow<E>(f, f.outGrad, at, r);
        for (int i = lanes.index(), k = 0; i < f.width; i += lanes.count(), ++k) {
            keys[k] += pair.scoreGrad * E::load(query, i);
            values[k] += pair.probability * E::load(grad, i);
        }
    }
    auto* keyTo = const_cast<typename E::Stored*>(headRow<E>(f, f.keyGrad, at, j));
    auto* valueTo = const_cast<typename E::Stored*>(headRow<E>(f, f.valueGrad, at, j));
    for (int i = lanes.index(), k = 0; i < f.width; i += lanes.count(), ++k) {
        E::store(keyTo, i, keys[k] * headScale(f) + (f.addKeys != 0 ? E::load(keyTo, i) : 0.0F));
        E::store(valueTo, i, values[k] + (f.addKeys != 0 ? E::load(valueTo, i) : 0.0F));
    }
}

} // namespace stagewright::cuda
