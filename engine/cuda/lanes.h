// Lanes of the bodies in kernel_bodies.h that are threads of a GPU's block, over `Threads` (matrix_tiles.h). Sums have
// a fixed shape: halves of a warp's lanes onto each other, then warps in order.
#pragma once

#include "engine/cuda/matrix_tiles.h"

namespace stagewright::cuda {

// A warp. All its lanes call sum() and largest() together.
template <typename Threads>
struct WarpLanes {
    static constexpr int headPerLane = 4; // heads of at most 128
    Threads threads;

    STAGEWRIGHT_BOTH int index() const { return threads.thread() % 32; }
    STAGEWRIGHT_BOTH int count() const { return 32; }
    template <typename T>
    STAGEWRIGHT_BOTH T sum(T x) const
    {
        for (int offset = 16; offset > 0; offset /= 2) x += threads.shuffleXor(x, offset);
        return x;
    }
    STAGEWRIGHT_BOTH float largest(float x) const
    {
        for (int offset = 16; offset > 0; offset /= 2) x = fmaxf(x, threads.shuffleXor(x, offset));
        return x;
    }
    STAGEWRIGHT_BOTH void sumBoth(float (&x)[2]) const
    {
        x[0] = sum(x[0]);
        x[1] = sum(x[1]);
    }
};

// A block of Count threads, which call sum() and largest() together, of one BlockLanes: exchanges take turns with two
// sets of slots, so that each needs one barrier (who writes a set again has passed the barrier of the exchange between,
// which comes after all have read the set).
template <typename Threads, int Count>
struct BlockLanes {
    static constexpr int warps = Count / 32;
    Threads threads;
    mutable int turn = 0;

    STAGEWRIGHT_BOTH int index() const { return threads.thread(); }
    STAGEWRIGHT_BOTH int count() const { return Count; }
    template <typename T>
    STAGEWRIGHT_BOTH T sum(T x) const
    {
        T own[1] = {WarpLanes<Threads>{threads}.sum(x)};
        const int first = share(own);
        T total = ofWarp<T>(first, 0);
        for (int i = 1; i < warps; ++i) total += ofWarp<T>(first, i);
        return total;
    }
    STAGEWRIGHT_BOTH float largest(float x) const
    {
        float own[1] = {WarpLanes<Threads>{threads}.largest(x)};
        const int first = share(own);
        float most = ofWarp<float>(first, 0);
        for (int i = 1; i < warps; ++i) most = fmaxf(most, ofWarp<float>(first, i));
        return most;
    }
    STAGEWRIGHT_BOTH void sumBoth(float (&x)[2]) const
    {
        WarpLanes<Threads>{threads}.sumBoth(x);
        const int first = share(x);
        for (int number = 0; number < 2; ++number) {
            x[number] = ofWarp<float>(first + number * warps, 0);
            for (int i = 1; i < warps; ++i) x[number] += ofWarp<float>(first + number * warps, i);
        }
    }

    // Each type has two sets of 8 bytes a warp, one behind the other.
    template <typename T>
    static constexpr int setSlots = int{8 / sizeof(T)} * warps;
    template <typename T>
    STAGEWRIGHT_BOTH T ofWarp(int first, int warp) const
    {
        return threads.template slot<T, 2 * setSlots<T>>(first + warp);
    }
    // The numbers of all warps; where the first one's are.
    template <typename T, int Numbers>
    STAGEWRIGHT_BOTH int share(const T (&own)[Numbers]) const
    {
        static_assert(Numbers * sizeof(T) <= 8);
        const int first = turn * setSlots<T>;
        turn = 1 - turn;
        for (int number = 0; number < Numbers && index() % 32 == 0; ++number)
            threads.template putSlot<T, 2 * setSlots<T>>(first + number * warps + index() / 32, own[number]);
        threads.barrier();
        return first;
    }
};

// Part `part` of STAGEWRIGHT_PARTIALS of the sum of squares of `count` tensors, by lanes that are a block; `more`:
// added to what is there.
template <typename Lanes>
STAGEWRIGHT_BOTH void squaresPart(const Lanes& lanes, const StagewrightTensor* tensors, int count, bool more,
                                  double* partial, int part)
{
    double own = 0;
    for (int k = 0; k < count; ++k) {
        const std::size_t all = tensors[k].count;
        constexpr std::size_t pieces = std::size_t{STAGEWRIGHT_PARTIALS} * Fp32::wide;
        // a part starts at 16 bytes where the tensor does
        const std::size_t each = (all + pieces - 1) / pieces * Fp32::wide;
        const std::size_t first = static_cast<std::size_t>(part) * each;
        if (first < all) own += ownSquares(lanes, all - first < each ? all - first : each, tensors[k].gradient + first);
    }
    const double sum = lanes.sum(own);
    if (lanes.index() == 0) partial[part] = more ? partial[part] + sum : sum;
}
template <typename Lanes>
STAGEWRIGHT_BOTH void addPartials(const Lanes& lanes, const double* partial, double* sum)
{
    static_assert(STAGEWRIGHT_PARTIALS % 32 == 0);
    double own = 0;
    for (int i = lanes.index(); i < STAGEWRIGHT_PARTIALS; i += lanes.count()) own += partial[i];
    const double all = lanes.sum(own);
    if (lanes.index() == 0) *sum = all;
}

} // namespace stagewright::cuda
