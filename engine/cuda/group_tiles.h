// Tiles for GEMMs of a warp group: four warps that multiply 64 rows at once and read what they can from shared
// memory (Hopper's wgmma, PTX ISA "asynchronous warpgroup-level matrix instructions"). A tile of Rows × Width bf16
// numbers lies in panels of 64 columns, one panel after the other, whose rows of 128 bytes have their 16-byte pieces
// exchanged by the row's number: the swizzle of 128 bytes that the instructions know. Tiles begin at multiples of 1,024
// bytes. Bodies are written over `Groups`, which has, beside what `Threads` has (matrix_tiles.h), for all threads of
// the group together:
//   void copiesReady()                             after waitCopies(), before a barrier: GEMMs may read what was
//                                                  copied
//   void beginGemm(), endGemm()            around GEMMs; sums are there, and tiles may be overwritten, after
//                                                  the end
//   void multiply<Columns>(sums, a, b, fresh)      sums (64 × Columns) += a · bᵀ over 16 columns; a: address of row 0's
//                                                  first of 64 rows, b: of Columns rows; fresh: sums are set, not added
//                                                  to
//   void multiplyRows<Columns>(sums, a, b, panel)  sums += a · b: a's 64 × 16 numbers in registers, as mma.m16n8k16
//                                                  takes them from each warp; b: address of 16 rows of Columns numbers,
//                                                  panels `panel` bytes apart
// A thread's sums[n] are those of an m16n8 GEMM: of its warp's 16 rows, columns 8 n ….
#pragma once

#include "engine/cuda/matrix_tiles.h"

namespace stagewright::cuda {

inline constexpr int groupRows = 64;    // of a GEMM, and threads in pairs: a group has 128
inline constexpr int panelColumns = 64; // 128 bytes
inline constexpr std::uint32_t panelRow = 128;
inline constexpr std::uint32_t tileAlignment = 1024; // bytes: the first of a tile is at a multiple of it

// As the hardware exchanges pieces: by the address itself.
STAGEWRIGHT_BOTH constexpr std::uint32_t exchanged(std::uint32_t at) { return at ^ ((at >> 7 & 7U) << 4); }
template <int Rows>
STAGEWRIGHT_BOTH constexpr std::uint32_t panelBytes()
{
    static_assert(Rows * panelRow % tileAlignment == 0);
    return Rows * panelRow;
}

// Rows first … first + Rows of a matrix to a tile in panels; as copyTile.
template <int Width, int Rows, typename Threads>
STAGEWRIGHT_TILE void copyPanels(const Threads& t, std::uint32_t tile, const std::uint16_t* matrix, std::size_t stride,
                                 int first, int rows, int width)
{
    copyRows<Width, Rows>(t, matrix, stride, first, rows, width, [tile](int row, int piece) {
        return exchanged(tile + static_cast<std::uint32_t>(piece / 8) * panelBytes<Rows>() +
                         static_cast<std::uint32_t>(row) * panelRow + static_cast<std::uint32_t>(piece % 8) * 16);
    });
}

// The group's GEMMs made of the GEMMs of its warps: what the instructions compute, for tests.
template <typename Threads>
struct GroupOfWarps : Threads {
    explicit GroupOfWarps(const Threads& threads) : Threads(threads) {}

    STAGEWRIGHT_BOTH void copiesReady() const {}
    STAGEWRIGHT_BOTH void beginGemm() const {}
    STAGEWRIGHT_BOTH void endGemm() const {}
    template <int Columns>
    STAGEWRIGHT_BOTH void multiply(float (&sums)[Columns / 8][4], std::uint32_t a, std::uint32_t b, bool fresh) const
    {
        const auto lane = static_cast<std::uint32_t>(this->thread() % 32);
        const auto warp = static_cast<std::uint32_t>(this->thread() / 32);
        if (fresh)
            for (auto& sum : sums)
                for (float& number : sum) number = 0;
        const Quad left = this->loadMatrices(exchanged(a + (warp * 16 + lane % 16) * panelRow + lane / 16 * 16));
        for (int n = 0; n < Columns / 16; ++n) {
            const Quad right = this->loadMatrices(exchanged(
                b + (static_cast<std::uint32_t>(n) * 16 + lane % 8 + lane / 16 * 8) * panelRow + lane / 8 % 2 * 16));
            this->multiplyAdd(sums[2 * n], left, right.at[0], right.at[1]);
            this->multiplyAdd(sums[2 * n + 1], left, right.at[2], right.at[3]);
        }
    }
    template <int Columns>
    STAGEWRIGHT_BOTH void multiplyRows(float (&sums)[Columns / 8][4], const Quad& a, std::uint32_t b,
                                       std::uint32_t panel) const
    {
        const auto lane = static_cast<std::uint32_t>(this->thread() % 32);
        for (int n = 0; n < Columns / 16; ++n) {
            const auto part = static_cast<std::uint32_t>(n);
            const Quad right = this->loadTransposed(
                exchanged(b + part / 4 * panel + lane % 16 * panelRow + (part % 4 * 2 + lane / 16) * 16));
            this->multiplyAdd(sums[2 * n], a, right.at[0], right.at[1]);
            this->multiplyAdd(sums[2 * n + 1], a, right.at[2], right.at[3]);
        }
    }
};

} // namespace stagewright::cuda
