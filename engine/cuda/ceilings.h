// What a device can do at most: the rates of a large GEMM and of a large copy, as its own marks time them.
// The roofline of a run's ops is drawn against them (docs/numbers.md, "Roofline").
#pragma once

#include "engine/cuda/module_abi.h"
#include "schedules/base/result.h"

namespace stagewright::cuda {

struct DeviceCeilings {
    // floating-point operations per second of C = A · Bᵀ of random elements, in the request's precision
    double matrixFlops = 0;
    double copyBytes = 0; // bytes read and written per second by a copy within the device
};

// Each is the best of five runs; the GEMM's matrices grow until they are 8,192 wide, take an eighth of the free
// memory, or need 0.1 s; the copy's blocks grow in the same way, up to 256 MiB. Measured once per process for a device,
// precision and partition, while nothing else runs there; later calls give the same figures. Any thread. Unavailable
// where memory runs out.
Result<DeviceCeilings> ceilingsOf(const StagewrightCudaTable& table, const StagewrightQueueRequest& request);

} // namespace stagewright::cuda
