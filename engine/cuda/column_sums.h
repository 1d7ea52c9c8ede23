// Sums over the rows of a matrix, column by column, by blocks of a GPU: a block has columnTile columns, in pieces of 16
// bytes where they fall into such, and every lane of it adds up each so-and-so-many-th row; then a thread a column adds
// the lanes' sums in order. Where there are too few columns to fill a GPU with blocks, the rows are cut into parts,
// whose sums are added in order by a second launch. The shape of a sum depends on rows, width and whether there are
// pieces, so the same input gives the same bits.
#pragma once

#include "engine/cuda/matrix_tiles.h"

namespace stagewright::cuda {

inline constexpr int columnTile = 64;
inline constexpr int columnThreads = 256;

template <typename E, int N>
STAGEWRIGHT_BOTH void addPiece(float (&to)[N], const Packed<E, N>& piece)
{
    STAGEWRIGHT_UNROLL
    for (int k = 0; k < N; ++k) to[k] += piece.at(k);
}

// A kind of rows has `kinds` sums a column, made by `blocks` blocks on each of a GPU's multiprocessors; load() gets
// piece (row, column …), for `atOnce` rows before the first is awaited; add() adds it to a thread's sums; put() takes a
// column's sums.
template <typename E>
struct PlainRows { // (rows, width) of elements
    static constexpr int kinds = 1, blocks = 4, atOnce = 4;
    using Element = E;
    template <int N>
    using Loaded = Packed<E, N>;
    const void* x;
    int width;
    float* sums; // overwritten

    STAGEWRIGHT_BOTH bool pieces() const { return inPieces<E>(static_cast<std::size_t>(width), x); }
    template <int N>
    STAGEWRIGHT_BOTH Loaded<N> load(int r, int column) const
    {
        return Loaded<N>::load(row<E>(x, 0), static_cast<std::size_t>(r) * width + column);
    }
    template <int N>
    STAGEWRIGHT_BOTH void add(const Loaded<N>& piece, int, int, float (&to)[kinds][N]) const
    {
        addPiece(to[0], piece);
    }
    STAGEWRIGHT_BOTH void put(int column, const float (&sum)[kinds]) const { sums[column] = sum[0]; }
};

template <typename E>
struct NormRows { // what a LayerNorm's backward sums up
    static constexpr int kinds = 4, blocks = 2, atOnce = 2;
    using Element = E;
    template <int N>
    struct Loaded {
        Packed<E, N> grad, normal, residual, input;
    };
    StagewrightNorm n;
    int width = n.width;

    STAGEWRIGHT_BOTH bool pieces() const
    {
        return inPieces<E>(static_cast<std::size_t>(width), n.outGrad, static_cast<const void*>(n.normal), n.residual,
                           static_cast<const void*>(n.inputGrad));
    }
    template <int N>
    STAGEWRIGHT_BOTH Loaded<N> load(int r, int column) const
    {
        using P = Packed<E, N>;
        const std::size_t at = static_cast<std::size_t>(r) * width + column;
        Loaded<N> loaded{
            P::load(row<E>(n.outGrad, 0), at), P::load(row<E>(static_cast<const void*>(n.normal), 0), at), {}, {}};
        if (n.residualSum) loaded.residual = P::load(row<E>(n.residual, 0), at);
        if (n.inputSum) loaded.input = P::load(row<E>(static_cast<const void*>(n.inputGrad), 0), at);
        return loaded;
    }
    template <int N>
    STAGEWRIGHT_BOTH void add(const Loaded<N>& loaded, int, int, float (&to)[kinds][N]) const
    {
        STAGEWRIGHT_UNROLL
        for (int k = 0; k < N; ++k) {
            to[0][k] += loaded.grad.at(k) * loaded.normal.at(k);
            to[1][k] += loaded.grad.at(k);
        }
        if (n.residualSum) addPiece(to[2], loaded.residual);
        if (n.inputSum) addPiece(to[3], loaded.input);
    }
    STAGEWRIGHT_BOTH void put(int column, const float (&sum)[kinds]) const
    {
        float* const places[kinds] = {n.gammaSum, n.betaSum, n.residualSum, n.inputSum};
        for (int kind = 0; kind < kinds; ++kind)
            if (places[kind]) places[kind][column] = sum[kind];
    }
};

// What a GELU's backward sums up, which it makes while it does: a matrix (rows, width) of gradients of the GELU's
// results becomes that of its arguments, and the arguments become the results.
template <typename E>
struct GeluRows {
    static constexpr int kinds = 1, blocks = 4, atOnce = 2;
    using Element = E;
    template <int N>
    struct Loaded {
        Packed<E, N> hidden, gradient;
    };
    void *hidden, *gradient;
    int width;
    float* sums; // of the gradients as they are stored; overwritten

    STAGEWRIGHT_BOTH bool pieces() const
    {
        return inPieces<E>(static_cast<std::size_t>(width), static_cast<const void*>(hidden),
                           static_cast<const void*>(gradient));
    }
    template <int N>
    STAGEWRIGHT_BOTH Loaded<N> load(int r, int column) const
    {
        const std::size_t at = static_cast<std::size_t>(r) * width + column;
        return {Packed<E, N>::load(row<E>(hidden, 0), at), Packed<E, N>::load(row<E>(gradient, 0), at)};
    }
    template <int N>
    STAGEWRIGHT_BOTH void add(const Loaded<N>& loaded, int r, int column, float (&to)[kinds][N]) const
    {
        float active[N], inner[N];
        STAGEWRIGHT_UNROLL
        for (int k = 0; k < N; ++k) {
            const GeluPoint point = geluAt<E>(loaded.hidden.at(k));
            active[k] = point.value;
            inner[k] = loaded.gradient.at(k) * point.slope;
        }
        const std::size_t at = static_cast<std::size_t>(r) * width + column;
        Packed<E, N>::of(active).store(row<E>(hidden, 0), at);
        const auto stored = Packed<E, N>::of(inner);
        stored.store(row<E>(gradient, 0), at);
        addPiece(to[0], stored);
    }
    STAGEWRIGHT_BOTH void put(int column, const float (&sum)[kinds]) const { sums[column] = sum[0]; }
};

template <typename E>
struct TokenRows { // the rows of an embedding's gradient that have one token; added to its row of the table's gradient
    static constexpr int kinds = 1, blocks = 1;
    using Element = E;
    StagewrightEmbedding e;
    int token;
    int width = e.width;

    STAGEWRIGHT_BOTH bool pieces() const { return inPieces<E>(static_cast<std::size_t>(width), e.outGrad); }
    STAGEWRIGHT_BOTH void put(int column, const float (&sum)[kinds]) const
    {
        e.tokenGrad[static_cast<std::size_t>(token) * width + column] += sum[0];
    }
};

// Into how many parts the rows are cut: as many blocks as 132 multiprocessors hold at once, but 64 rows or more in a
// part.
template <typename Rows>
STAGEWRIGHT_BOTH int columnParts(int rows, int width)
{
    const int tiles = (width + columnTile - 1) / columnTile;
    int parts = 132 * Rows::blocks / tiles;
    if (parts > rows / 64) parts = rows / 64;
    return parts < 1 ? 1 : parts;
}
// Floats of workspace for the parts' sums.
template <typename Rows>
std::size_t partFloats(int rows, int width)
{
    const int parts = columnParts<Rows>(rows, width);
    return parts == 1 ? 0 : static_cast<std::size_t>(parts) * Rows::kinds * static_cast<std::size_t>(width);
}

// The rows of a lane of `lanes`: every `lanes`-th.
template <int N, typename Rows>
STAGEWRIGHT_BOTH void addRows(const Rows& of, int first, int end, int lane, int lanes, int column,
                              float (&to)[Rows::kinds][N])
{
    typename Rows::template Loaded<N> loaded[Rows::atOnce];
    int r = first + lane;
    for (; r + (Rows::atOnce - 1) * lanes < end; r += Rows::atOnce * lanes) {
        STAGEWRIGHT_UNROLL
        for (int i = 0; i < Rows::atOnce; ++i) loaded[i] = of.template load<N>(r + i * lanes, column);
        STAGEWRIGHT_UNROLL
        for (int i = 0; i < Rows::atOnce; ++i) of.template add<N>(loaded[i], r + i * lanes, column, to);
    }
    for (; r < end; r += lanes) of.template add<N>(of.template load<N>(r, column), r, column, to);
}
// Rows of tokens lie side by side: their bytes are compared sixteen at a time, as few are the token.
template <int N, typename E>
STAGEWRIGHT_BOTH void addRows(const TokenRows<E>& of, int first, int end, int lane, int lanes, int column,
                              float (&to)[1][N])
{
    const auto addRow = [&](int r) {
        addPiece(to[0], Packed<E, N>::load(row<E>(of.e.outGrad, 0), static_cast<std::size_t>(r) * of.width + column));
    };
    if (of.token > 255) return; // no byte is
    const std::uint8_t* bytes = of.e.bytes;
    const std::uint32_t sought = 0x01010101U * static_cast<std::uint32_t>(of.token);
    const int each = ((end - first + lanes - 1) / lanes + 15) / 16 * 16;
    int r = first + lane * each;
    const int stop = r + each < end ? r + each : end;
    for (; r + 16 <= stop && reinterpret_cast<std::uintptr_t>(bytes + r) % 16 == 0; r += 16) {
        const auto words = Packed<Fp32, 4>::load(reinterpret_cast<const float*>(bytes + r), 0); // their bits
        for (int w = 0; w < 4; ++w) {
            const std::uint32_t other = words.word[w] ^ sought;
            // the top bit of each byte that is
            std::uint32_t equal = ~(((other & 0x7f7f7f7fU) + 0x7f7f7f7fU) | other | 0x7f7f7f7fU);
            for (int i = 4 * w; equal != 0; equal >>= 8, ++i)
                if ((equal & 0x80U) != 0) addRow(r + i);
        }
    }
    for (; r < stop; ++r)
        if (bytes[r] == of.token) addRow(r);
}

template <int N, typename Rows, typename Threads>
STAGEWRIGHT_BOTH void sumColumnsBy(const Threads& t, const Rows& of, int first, int end, int tile, float* part)
{
    constexpr int across = columnTile / N, lanes = columnThreads / across;
    // A lane's numbers by their place in the piece, so that a warp's stores go to different banks, those of the lanes
    // apart by as much.
    constexpr int ofLane = columnTile + (N == 1 ? 0 : across), numbers = Rows::kinds * lanes * ofLane;
    const int lane = t.thread() / across;
    const int piece = t.thread() % across;
    float own[Rows::kinds][N] = {};
    if (tile * columnTile + piece * N < of.width)
        addRows<N>(of, first, end, lane, lanes, tile * columnTile + piece * N, own);
    STAGEWRIGHT_UNROLL
    for (int kind = 0; kind < Rows::kinds; ++kind) {
        STAGEWRIGHT_UNROLL
        for (int k = 0; k < N; ++k)
            t.template putSlot<float, numbers>((kind * lanes + lane) * ofLane + k * across + piece, own[kind][k]);
    }
    t.barrier();
    const int column = tile * columnTile + t.thread();
    if (t.thread() >= columnTile || column >= of.width) return;
    const int place = t.thread() % N * across + t.thread() / N;
    float sum[Rows::kinds] = {};
    for (int kind = 0; kind < Rows::kinds; ++kind)
        for (int i = 0; i < lanes; ++i)
            sum[kind] += t.template slot<float, numbers>((kind * lanes + i) * ofLane + place);
    if (!part) {
        of.put(column, sum);
        return;
    }
    for (int kind = 0; kind < Rows::kinds; ++kind) part[static_cast<std::size_t>(kind) * of.width + column] = sum[kind];
}

// A block's work: tile `tile` of part `part` of `parts`; `partial` null where there is one part.
template <typename Rows, typename Threads>
STAGEWRIGHT_BOTH void sumColumnsBlock(const Threads& t, const Rows& of, int rows, int tile, int part, int parts,
                                      float* partial)
{
    const int each = (rows + parts - 1) / parts;
    const int first = part * each;
    const int end = first + each < rows ? first + each : rows;
    float* to = partial ? partial + static_cast<std::size_t>(part) * Rows::kinds * of.width : nullptr;
    if (of.pieces())
        sumColumnsBy<Rows::Element::wide>(t, of, first, end, tile, to);
    else
        sumColumnsBy<1>(t, of, first, end, tile, to);
}

// A thread's work of the second launch.
template <typename Rows>
STAGEWRIGHT_BOTH void addColumnParts(const Rows& of, int parts, const float* partial, int column)
{
    float sum[Rows::kinds] = {};
    for (int part = 0; part < parts; ++part)
        for (int kind = 0; kind < Rows::kinds; ++kind)
            sum[kind] += partial[(static_cast<std::size_t>(part) * Rows::kinds + kind) * of.width + column];
    of.put(column, sum);
}

// One column after the other, as the fake device has it.
template <typename Rows>
void sumColumns(const Rows& of, int rows)
{
    for (int column = 0; column < of.width; ++column) {
        float sum[Rows::kinds][1] = {};
        addRows<1>(of, 0, rows, 0, 1, column, sum);
        float all[Rows::kinds];
        for (int kind = 0; kind < Rows::kinds; ++kind) all[kind] = sum[kind][0];
        of.put(column, all);
    }
}

} // namespace stagewright::cuda
