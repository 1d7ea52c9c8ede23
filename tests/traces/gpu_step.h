// A hand-made GPU step: two ranks, one microbatch, kernels, copies and messages.
//
//   rank 0  F  0 … 100   gemm 0-40, gelu 50-90 (10 inside free, and 10 at the end)      B 300 … 400  gemm 300-400
//   rank 1  F  150 … 250 gemm 150-250                                                   B 250 … 290  gemm 250-270
//   messages: F copied 100 … 120 with the sender posted at 100; B by NCCL, posted by rank 1 at 290, by rank 0 at 280,
//   until 300
#pragma once

#include "traces/run/run.h"

namespace stagewright::samples {

// other: the kernel of rank 0 at 110 … 115, which belongs to no op.
std::shared_ptr<const Timeline> gpuStep(const char* other = "somebody's");
// The same as a run with its model, and the device's ceilings in its environment: 1e12 operations and 2e11 bytes a
// second.
Run gpuRun();

} // namespace stagewright::samples
