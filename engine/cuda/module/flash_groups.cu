// Launches of the attention by warp groups, for compute capability 9.0 alone. The arithmetic is in flash_groups.h.
#include "engine/cuda/flash_groups.h"
#include "engine/cuda/module/device_groups.cuh"
#include "engine/cuda/module/queue.cuh"

namespace stagewright::cuda::module {

namespace {

constexpr int blocksPerMultiprocessor = 2; // so that one's GEMMs run beside the other's exponentials

// As in flash.cu: the blocks with most to do begin first.
__device__ int fromLast(int tiles) { return tiles - 1 - static_cast<int>(blockIdx.z); }
template <int Width>
__global__ void __launch_bounds__(tileThreads, blocksPerMultiprocessor) flashForwardGroups(StagewrightFlash f)
{
    flashForwardGroup<Width>(DeviceGroups(), f, static_cast<int>(blockIdx.y), static_cast<int>(blockIdx.x),
                             fromLast(static_cast<int>(gridDim.z)));
}
template <int Width>
__global__ void __launch_bounds__(tileThreads, blocksPerMultiprocessor) flashQueryGroups(StagewrightFlash f)
{
    flashQueryGroup<Width>(DeviceGroups(), f, static_cast<int>(blockIdx.y), static_cast<int>(blockIdx.x),
                           fromLast(static_cast<int>(gridDim.z)));
}
template <int Width>
__global__ void __launch_bounds__(tileThreads, blocksPerMultiprocessor) flashKeyGroups(StagewrightFlash f)
{
    flashKeyGroup<Width>(DeviceGroups(), f, static_cast<int>(blockIdx.y), static_cast<int>(blockIdx.x),
                         static_cast<int>(blockIdx.z));
}

int launchGroups(StagewrightQueue* queue, const char* what, void (*kernel)(StagewrightFlash), const StagewrightFlash& f,
                 std::uint32_t tiles)
{
    const std::uint32_t bytes = tiles + DeviceGroups::slack;
    if (int bad = check(
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)), what))
        return bad;
    const dim3 grid(static_cast<unsigned>(f.heads), static_cast<unsigned>(f.batch),
                    static_cast<unsigned>(flashBlocks(f.tokens, groupRows)));
    kernel<<<grid, tileThreads, bytes, queue->compute()>>>(f);
    return check(cudaGetLastError(), what);
}

} // namespace

int flashGroups(StagewrightQueue* queue, const StagewrightFlash& f)
{
    int bad = 0;
    withTileWidth(f, [&](auto width) {
        constexpr int w = decltype(width)::value;
        bad = launchGroups(queue, "attention", flashForwardGroups<w>, f, GroupShape<w>::forwardBytes);
    });
    return bad;
}

int flashGroupsBackward(StagewrightQueue* queue, const StagewrightFlash& f)
{
    int bad = 0;
    withTileWidth(f, [&](auto width) {
        constexpr int w = decltype(width)::value;
        bad = launchGroups(queue, "attention backward", flashQueryGroups<w>, f, GroupShape<w>::queryBytes);
        if (bad == 0) bad = launchGroups(queue, "attention backward", flashKeyGroups<w>, f, GroupShape<w>::keyBytes);
    });
    return bad;
}

} // namespace stagewright::cuda::module
