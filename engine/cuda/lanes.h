// Lanes of the bodies in kernel_bodies.h that are threads of a GPU's block, over `Threads` (matrix_tiles.h). Sums have a fixed shape: halves of a warp's lanes onto each other, then warps in order.
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
        for (int offset = 16; offset > 0; offset /= 2)
            x += threads.shuffleXor(x, offset);
        return x;
    }
    STAGEWRIGHT_BOTH float largest(float x) const
    {
        for (int offset = 16; offset > 0; offset /= 2)
            x = fmaxf(x, threads.shuffleXor(x, offset));
        return x;
    }
};

// A block of Count threads, which call sum() and largest() together.
template <typename Threads, int Count>
struct BlockLanes {
    static constexpr int warps = Count / 32;
    Threads threads;

    STAGEWRIGHT_BOTH int index() const { return threads.thread(); }
    STAGEWRIGHT_BOTH int count() const { return Count; }
    template <typename T>
    STAGEWRIGHT_BOTH T sum(T x) const
    {
        share(WarpLanes<Threads>{threads}.sum(x));
        T total = threads.template slot<T, warps>(0);
        for (int i = 1; i < warps; ++i)
            total += threads.template slot<T, warps>(i);
        return total;
    }
    STAGEWRIGHT_BOTH float largest(float x) const
    {
        share(WarpLanes<Threads>{threads}.largest(x));
        float most = threads.template slot<float, warps>(0);
        for (int i = 1; i < warps; ++i)
            most = fmaxf(most, threads.template slot<float, warps>(i));
        return most;
    }

private:
    template <typename T>
    STAGEWRIGHT_BOTH void share(T ofWarp) const
    {
        threads.barrier(); // what was shared before has been read
        if (index() % 32 == 0) threads.template putSlot<T, warps>(index() / 32, ofWarp);
        threads.barrier();
    }
};

// Part `part` of STAGEWRIGHT_PARTIALS of the sum of squares of `count` tensors, by lanes that are a block; `more`: added to what is there.
template <typename Lanes>
STAGEWRIGHT_BOTH void squaresPart(const Lanes& lanes, const StagewrightTensor* tensors, int count, bool more, double* partial, int part)
{
    double own = 0;
    for (int k = 0; k < count; ++k) {
        const std::size_t all = tensors[k].count;
        constexpr std::size_t pieces = std::size_t{STAGEWRIGHT_PARTIALS} * Fp32::wide;
        const std::size_t each = (all + pieces - 1) / pieces * Fp32::wide; // a part begins at 16 bytes where the tensor does
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
    for (int i = lanes.index(); i < STAGEWRIGHT_PARTIALS; i += lanes.count())
        own += partial[i];
    const double all = lanes.sum(own);
    if (lanes.index() == 0) *sum = all;
}

} // namespace stagewright::cuda
