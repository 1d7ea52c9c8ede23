// A CUPTI module without CUPTI: the same table as libstagewright_cupti.so, which reports what the device of
// fake_device.h did. It is in the library of the fake CUDA module, as the two share a process.
//   STAGEWRIGHT_FAKE_CUPTI   conflict: another profiler is attached; failed: it does not start; lossy: every tenth
//                            kernel or copy is dropped; stays: it can't be detached
//   STAGEWRIGHT_FAKE_NVTX    a file for the names of ranges, one per line, as they begin
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/cupti/gpu_record.h"

namespace stagewright::fake {

// A piece of work between its launch and its end.
struct Launch {
    bool traced = false;
    GpuRecord record;
};

// On the thread that requests the work, whose ids it carries. begun: when the call began.
Launch launched(const char* what, std::size_t bytes, int device, std::uint32_t queue, int lane, std::int64_t begun,
                std::int64_t asked);
void ran(const Launch& launch, std::int64_t start, std::int64_t end);

} // namespace stagewright::fake
