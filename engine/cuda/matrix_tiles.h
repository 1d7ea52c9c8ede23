// Tiles of bf16 matrices in a block's shared memory and what the matrix units take from them, for kernels whose bodies
// are compiled for GPUs and for the host alike. A body is written over `Threads`: one thread of a block of tileThreads,
// on a GPU engine/cuda/module/device_threads.cuh, in tests tests/support/emulated_block.h, which fails on an access out
// of order or bounds.
//   int thread()                        its number in the block; 32 in a row are a warp
//   void barrier()                      all threads of the block meet; what they wrote to shared memory is there for
//                                       all
//   T shuffleXor(x, mask)               the number of lane (lane ^ mask); the whole warp calls it together, as the next
//                                       three
//   Quad loadMatrices(at)               ldmatrix.x4: four 8×8 matrices, whose rows of 16 bytes start where lanes 0–7,
//                                       8–15, 16–23 and 24–31 say; register i holds of matrix i row lane/4, columns
//                                       lane%4·2 + {0, 1}
//   Quad loadTransposed(at)             the same with .trans: column lane/4, rows lane%4·2 + {0, 1}
//   void multiplyAdd(sums, a, b0, b1)   mma.m16n8k16, bf16 → fp32: sums (16×8) += a (16×16) · b (16×8); fragments as
//                                       the PTX ISA has them
//   void copy16(to, from, there)        cp.async of 16 bytes to shared memory, zeros where not `there`; copy4: of 4
//                                       bytes
//   void commitCopies(), waitCopies()   ends a group of copies; waits for all groups of this thread (a barrier
//                                       synchronises with the others)
//   float sharedFloat(at)               shared memory; addresses are bytes from the block's dynamic part
//   putSlot<T, Slots>(number, value), slot<T, Slots>(number)   separate shared memory, for numbers that threads
//                                                              exchange
//   loadFloat, loadPair, storeFloat, storePair (pointer …)   the device's memory; a pair: two bf16, the first in the
//                                                            lower half
//   uint32 pack(first, second)          two fp32 as bf16, to the nearest even;  float exp2(x)
#pragma once

#include "engine/cuda/kernel_bodies.h"

#ifdef __CUDACC__
#define STAGEWRIGHT_TILE __host__ __device__ __forceinline__
#else
#define STAGEWRIGHT_TILE inline
#endif

namespace stagewright::cuda {

inline constexpr int tileWarps = 4;
inline constexpr int tileThreads = 32 * tileWarps;

struct Quad { // of a lane: registers of two bf16 each
    std::uint32_t at[4];
};

// A tile has rows of `Width` numbers, a multiple of 64. The 16-byte pieces of a row are exchanged by its number, so
// that eight rows' pieces of one column lie in different banks.
template <int Width>
STAGEWRIGHT_TILE std::uint32_t pieceAt(std::uint32_t tile, int row, int piece)
{
    static_assert(Width % 64 == 0);
    return tile + static_cast<std::uint32_t>(row * (Width / 8) + (piece ^ (row & 7))) * 16;
}
template <int Width>
STAGEWRIGHT_BOTH constexpr std::uint32_t tileBytes(int rows)
{
    return static_cast<std::uint32_t>(rows) * Width * 2;
}

// Rows first … first + Rows of a matrix with `rows` rows of `width` (a multiple of 8), `stride` numbers apart, to
// shared memory, by all threads; zeros where the matrix has nothing. Rows start at 16 bytes. place(row, piece): where
// its 16 bytes go.
template <int Width, int Rows, typename Threads, typename Place>
STAGEWRIGHT_TILE void copyRows(const Threads& t, const std::uint16_t* matrix, std::size_t stride, int first, int rows,
                               int width, Place&& place)
{
    constexpr int pieces = Width / 8;
    static_assert(Rows * pieces % tileThreads == 0);
    STAGEWRIGHT_UNROLL
    for (int i = 0; i < Rows * pieces / tileThreads; ++i) {
        const int row = (i * tileThreads + t.thread()) / pieces;
        const int piece = (i * tileThreads + t.thread()) % pieces;
        const bool there = first + row < rows && piece * 8 < width;
        t.copy16(place(row, piece),
                 there ? matrix + static_cast<std::size_t>(first + row) * stride + std::size_t{8} * piece : matrix,
                 there);
    }
}
template <int Width, int Rows, typename Threads>
STAGEWRIGHT_TILE void copyTile(const Threads& t, std::uint32_t tile, const std::uint16_t* matrix, std::size_t stride,
                               int first, int rows, int width)
{
    copyRows<Width, Rows>(t, matrix, stride, first, rows, width,
                          [tile](int row, int piece) { return pieceAt<Width>(tile, row, piece); });
}

// A of 16×16 from rows row …, columns column … of a tile: its four registers are the quarters, downwards first.
template <int Width, typename Threads>
STAGEWRIGHT_TILE Quad leftOf(const Threads& t, std::uint32_t tile, int row, int column)
{
    const int lane = t.thread() % 32;
    return t.loadMatrices(pieceAt<Width>(tile, row + lane % 16, column / 8 + lane / 16));
}
// B of 16×16 (two of 16×8: registers 0 and 1, 2 and 3) = transpose of rows row …, columns column … of a tile.
template <int Width, typename Threads>
STAGEWRIGHT_TILE Quad rightOfTransposed(const Threads& t, std::uint32_t tile, int row, int column)
{
    const int lane = t.thread() % 32;
    return t.loadMatrices(pieceAt<Width>(tile, row + lane % 8 + lane / 16 * 8, column / 8 + lane / 8 % 2));
}
// B of 16×16 in the same way = rows row …, columns column … of a tile.
template <int Width, typename Threads>
STAGEWRIGHT_TILE Quad rightOf(const Threads& t, std::uint32_t tile, int row, int column)
{
    const int lane = t.thread() % 32;
    return t.loadTransposed(pieceAt<Width>(tile, row + lane % 16, column / 8 + lane / 16));
}

// A of 16×16 from two neighbouring sums of 16×8: a lane has of both the very numbers that it must hold of A.
template <typename Threads>
STAGEWRIGHT_TILE Quad leftOfSums(const Threads& t, const float (&one)[4], const float (&next)[4])
{
    return {{t.pack(one[0], one[1]), t.pack(one[2], one[3]), t.pack(next[0], next[1]), t.pack(next[2], next[3])}};
}

// A warp's 16×8 sums: number i of a lane is of row sumRow + i/2·8, column sumColumn + i%2.
template <typename Threads>
STAGEWRIGHT_TILE int sumRow(const Threads& t)
{
    return t.thread() % 32 / 4;
}
template <typename Threads>
STAGEWRIGHT_TILE int sumColumn(const Threads& t)
{
    return t.thread() % 4 * 2;
}

} // namespace stagewright::cuda
