// LayerMath on a CUDA device: the layers' arithmetic as GEMMs and kernels of the module, on the rank's queue.
#pragma once

#include <memory>

#include "engine/cuda/device_memory.h"
#include "engine/device/math.h"

namespace stagewright::cuda {

// memory: the allocator's. Losses and sums that the host requests are in workspace of the allocator, tagged with the
// stage. Attention over flashFrom tokens or more streams its keys and keeps no probabilities.
std::unique_ptr<layers::LayerMath> makeDeviceMath(DeviceMemory& memory, Allocator& allocator, int stage, int flashFrom);

} // namespace stagewright::cuda
