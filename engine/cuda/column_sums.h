// Sums over the rows of a matrix, column by column, by blocks of a GPU: a block has columnTile columns, in pieces of 16 bytes where they fall
// into such, and every lane of it adds up each so-and-so-many-th row; then a thread a column adds the lanes' sums in order. Where there are too few
// columns to fill a GPU with blocks, the rows are cut into parts, whose sums are added in order by a second launch. The shape of a sum depends
// on rows and width alone, so the same input gives the same bits.
#pragma once

#include "engine/cuda/matrix_tiles.h"

namespace stagewright::cuda {

inline constexpr int columnTile = 64;
inline constexpr int columnThreads = 256;

// Of which kind of rows: `kinds` sums a column; add() adds piece (row, column …) to a thread's; put() takes a column's sums.
template <typename E>
struct PlainRows { // (rows, width) of elements
    static constexpr int kinds = 1;
    using Element = E;
    const void* x;
    int width;
    float* sums; // overwritten

    STAGEWRIGHT_BOTH bool pieces() const { return inPieces<E>(static_cast<std::size_t>(width), x); }
    template <int N>
    STAGEWRIGHT_BOTH void add(int r, int column, float (&to)[kinds][N]) const
    {
        const auto piece = Piece<E, N>::load(row<E>(x, 0), static_cast<std::size_t>(r) * width + column);
        for (int k = 0; k < N; ++k)
            to[0][k] += piece.at[k];
    }
    STAGEWRIGHT_BOTH void put(int column, const float (&sum)[kinds]) const { sums[column] = sum[0]; }
};

template <typename E>
struct NormRows { // what a LayerNorm's backward sums up
    static constexpr int kinds = 4;
    using Element = E;
    StagewrightNorm n;
    int width = n.width;

    STAGEWRIGHT_BOTH bool pieces() const
    {
        return inPieces<E>(static_cast<std::size_t>(width), n.outGrad, static_cast<const void*>(n.normal), n.residual, static_cast<const void*>(n.inputGrad));
    }
    template <int N>
    STAGEWRIGHT_BOTH void add(int r, int column, float (&to)[kinds][N]) const
    {
        using P = Piece<E, N>;
        const std::size_t at = static_cast<std::size_t>(r) * width + column;
        const P grad = P::load(row<E>(n.outGrad, 0), at), normal = P::load(row<E>(static_cast<const void*>(n.normal), 0), at);
        for (int k = 0; k < N; ++k) {
            to[0][k] += grad.at[k] * normal.at[k];
            to[1][k] += grad.at[k];
        }
        if (n.residualSum) addPiece(to[2], P::load(row<E>(n.residual, 0), at));
        if (n.inputSum) addPiece(to[3], P::load(row<E>(static_cast<const void*>(n.inputGrad), 0), at));
    }
    STAGEWRIGHT_BOTH void put(int column, const float (&sum)[kinds]) const
    {
        float* const places[kinds] = {n.gammaSum, n.betaSum, n.residualSum, n.inputSum};
        for (int kind = 0; kind < kinds; ++kind)
            if (places[kind]) places[kind][column] = sum[kind];
    }

private:
    template <int N>
    STAGEWRIGHT_BOTH static void addPiece(float (&to)[N], const Piece<E, N>& piece)
    {
        for (int k = 0; k < N; ++k)
            to[k] += piece.at[k];
    }
};

template <typename E>
struct TokenRows { // the rows of an embedding's gradient that have one token; added to its row of the table's gradient
    static constexpr int kinds = 1;
    using Element = E;
    StagewrightEmbedding e;
    int token;
    int width = e.width;

    STAGEWRIGHT_BOTH bool pieces() const { return inPieces<E>(static_cast<std::size_t>(width), e.outGrad); }
    template <int N>
    STAGEWRIGHT_BOTH void add(int r, int column, float (&to)[kinds][N]) const
    {
        if (e.bytes[r] == token) PlainRows<E>{e.outGrad, width, nullptr}.template add<N>(r, column, to);
    }
    STAGEWRIGHT_BOTH void put(int column, const float (&sum)[kinds]) const
    {
        e.tokenGrad[static_cast<std::size_t>(token) * width + column] += sum[0];
    }
};

// Into how many parts the rows are cut, so that there are about two blocks for each of 132 multiprocessors and 64 rows or more in a part.
STAGEWRIGHT_BOTH inline int columnParts(int rows, int width)
{
    const int tiles = (width + columnTile - 1) / columnTile;
    int parts = (264 + tiles - 1) / tiles;
    if (parts > rows / 64) parts = rows / 64;
    return parts < 1 ? 1 : parts;
}
// Floats of workspace for the parts' sums.
template <typename Rows>
std::size_t partFloats(int rows, int width)
{
    const int parts = columnParts(rows, width);
    return parts == 1 ? 0 : static_cast<std::size_t>(parts) * Rows::kinds * static_cast<std::size_t>(width);
}

template <int N, typename Rows, typename Threads>
STAGEWRIGHT_BOTH void sumColumnsBy(const Threads& t, const Rows& of, int first, int end, int tile, float* part)
{
    constexpr int across = columnTile / N, lanes = columnThreads / across, numbers = Rows::kinds * lanes * columnTile;
    const int lane = t.thread() / across;
    const int inTile = t.thread() % across * N;
    float own[Rows::kinds][N] = {};
    if (tile * columnTile + inTile < of.width)
        for (int r = first + lane; r < end; r += lanes)
            of.template add<N>(r, tile * columnTile + inTile, own);
    for (int kind = 0; kind < Rows::kinds; ++kind)
        for (int k = 0; k < N; ++k)
            t.template putSlot<float, numbers>((kind * lanes + lane) * columnTile + inTile + k, own[kind][k]);
    t.barrier();
    const int column = tile * columnTile + t.thread();
    if (t.thread() >= columnTile || column >= of.width) return;
    float sum[Rows::kinds] = {};
    for (int kind = 0; kind < Rows::kinds; ++kind)
        for (int i = 0; i < lanes; ++i)
            sum[kind] += t.template slot<float, numbers>((kind * lanes + i) * columnTile + t.thread());
    if (!part) {
        of.put(column, sum);
        return;
    }
    for (int kind = 0; kind < Rows::kinds; ++kind)
        part[static_cast<std::size_t>(kind) * of.width + column] = sum[kind];
}

// A block's work: tile `tile` of part `part` of `parts`; `partial` null where there is one part.
template <typename Rows, typename Threads>
STAGEWRIGHT_BOTH void sumColumnsBlock(const Threads& t, const Rows& of, int rows, int tile, int part, int parts, float* partial)
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
        for (int r = 0; r < rows; ++r)
            of.template add<1>(r, column, sum);
        float all[Rows::kinds];
        for (int kind = 0; kind < Rows::kinds; ++kind)
            all[kind] = sum[kind][0];
        of.put(column, all);
    }
}

} // namespace stagewright::cuda
