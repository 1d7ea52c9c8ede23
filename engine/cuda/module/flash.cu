// Launches of the attention on the matrix units. The arithmetic is in flash_tiles.h.
#include "engine/cuda/flash_tiles.h"
#include "engine/cuda/module/device_threads.cuh"
#include "engine/cuda/module/queue.cuh"

namespace stagewright::cuda::module {

namespace {

constexpr int blocksPerMultiprocessor = 2; // at least: no more registers than that leaves a thread

// Later queries have more keys, earlier keys more queries: those blocks begin first, of all heads and samples, so that
// no long one is left to the end.
__device__ int fromLast(int tiles) { return tiles - 1 - static_cast<int>(blockIdx.z); }
template <int Width>
__global__ void __launch_bounds__(tileThreads, blocksPerMultiprocessor) flashForwardKernel(StagewrightFlash f)
{
    flashForwardTile<Width>(DeviceThreads{}, f, static_cast<int>(blockIdx.y), static_cast<int>(blockIdx.x),
                            fromLast(static_cast<int>(gridDim.z)));
}
template <int Width>
__global__ void __launch_bounds__(tileThreads, blocksPerMultiprocessor) flashQueryKernel(StagewrightFlash f)
{
    flashQueryTile<Width>(DeviceThreads{}, f, static_cast<int>(blockIdx.y), static_cast<int>(blockIdx.x),
                          fromLast(static_cast<int>(gridDim.z)));
}
template <int Width>
__global__ void __launch_bounds__(tileThreads, blocksPerMultiprocessor) flashKeyKernel(StagewrightFlash f)
{
    flashKeyTile<Width>(DeviceThreads{}, f, static_cast<int>(blockIdx.y), static_cast<int>(blockIdx.x),
                        static_cast<int>(blockIdx.z));
}

int launchTiles(StagewrightQueue* queue, const char* what, void (*kernel)(StagewrightFlash), const StagewrightFlash& f,
                int rows, std::uint32_t bytes)
{
    // More than 48 KiB must be allowed, which holds for the current device's kernel only: so at every launch.
    if (int bad = check(
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)), what))
        return bad;
    const dim3 grid(static_cast<unsigned>(f.heads), static_cast<unsigned>(f.batch),
                    static_cast<unsigned>(flashBlocks(f.tokens, rows)));
    kernel<<<grid, tileThreads, bytes, queue->compute()>>>(f);
    return check(cudaGetLastError(), what);
}

} // namespace

int flashTiles(StagewrightQueue* queue, const StagewrightFlash& f)
{
    int bad = 0;
    withTileWidth(f, [&](auto width) {
        constexpr int w = decltype(width)::value;
        bad = launchTiles(queue, "attention", flashForwardKernel<w>, f, flashRows<w>, flashForwardBytes<w>);
    });
    return bad;
}

int flashTilesBackward(StagewrightQueue* queue, const StagewrightFlash& f)
{
    int bad = 0;
    withTileWidth(f, [&](auto width) {
        constexpr int w = decltype(width)::value;
        bad = launchTiles(queue, "attention backward", flashQueryKernel<w>, f, flashRows<w>, flashQueryBytes<w>);
        if (bad == 0)
            bad = launchTiles(queue, "attention backward", flashKeyKernel<w>, f, flashRows<w>, flashKeyBytes<w>);
    });
    return bad;
}

} // namespace stagewright::cuda::module
