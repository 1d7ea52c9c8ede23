// The API calls that are recorded: those that put work on a device, by whoever makes them (the engine, cuBLASLt, NCCL).
// An external id comes with the record of a call only, so work of a call that is missing here belongs to nobody. All
// other calls would only fill buffers.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include <cupti.h>

namespace stagewright::cupti {

inline constexpr std::array runtimeCalls
{
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000,
        CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_ptsz_v11060,
        CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_v9000,
        CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_ptsz_v9000, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020,
        CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_ptsz_v7000, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy2DAsync_v3020,
        CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy2DAsync_ptsz_v7000, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyPeerAsync_v4000,
#if CUPTI_API_VERSION >= 130000 // what <<<>>> of a toolkit of CUDA 13 calls
        CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_v13000, CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_ptsz_v13000,
#endif
};
// Not compared with their work: one launch of a graph has many kernels, and a memset of no bytes, as cuBLASLt asks for
// before some GEMMs, puts nothing on the device.
inline constexpr std::array runtimeOtherCalls{
    CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000,
    CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_ptsz_v10000,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_ptsz_v7000,
};
inline constexpr std::array driverCalls{
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
};
inline constexpr std::array driverOtherCalls{
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async_ptsz,
};

template <typename Calls>
bool holds(const Calls& calls, std::uint32_t call)
{
    return std::any_of(calls.begin(), calls.end(),
                       [call](auto one) { return static_cast<std::uint32_t>(one) == call; });
}

} // namespace stagewright::cupti
