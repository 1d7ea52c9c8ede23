// NCCL's collectives between the devices of a training, against sums made on the host.
#pragma once

#include <span>
#include <vector>

#include "engine/check/kernel_check.h"
#include "engine/cuda/module_abi.h"

namespace stagewright::cuda {

// A message along the ring of devices, all-reduce, reduce-scatter and all-gather of random floats, an end on each
// device. Sums of n numbers below 1 may differ by their order, n · 2⁻²⁴ of them; the rest must be equal. Fewer than two
// devices: nothing. Unavailable where NCCL can't connect them, or a device fails.
Result<std::vector<KernelComparison>> compareCollectives(const StagewrightCudaTable& table,
                                                         std::span<const int> devices);

} // namespace stagewright::cuda
