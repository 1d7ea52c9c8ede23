// How fast a device's kernels are at a model's own shapes, one after the other and alone, beside the rates of a large
// GEMM and a large copy.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "engine/workload/workload.h"

namespace stagewright {

struct KernelTime {
    std::string kernel; // "expand": as docs/performance.md lists them
    std::string shape;  // "2048 x 8192 x 2048": rows, columns and depth of a GEMM
    // of one call, the median of several batches of calls by the device's clock; on the host the thread's processor
    // time
    double nanos = 0;
    double flops = 0; // floating-point operations of one call; 0: it moves bytes
    double bytes = 0; // read and written at least
};

// The kernels of a block's forward and backward, the ends and the optimizer, on the backend's first device, on one
// rank. The first two are "large GEMM" and "large copy", against which the others' rates can be held; what fits a
// cache may be above the copy's. Usage: heads or elements that the backend refuses, shapes beyond 2³¹ elements;
// Unavailable: no device; Failed: with the kernel's name; Cancelled.
Result<std::vector<KernelTime>> timeKernels(std::string_view backend, const DeviceOptions& options,
                                            const Workload& workload, int microbatchSize, const std::stop_token& stop);

} // namespace stagewright
