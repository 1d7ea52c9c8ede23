// What changed on the devices between two runs' steps, from kernels and copies alone: for traces whose ranges are not recognised as ops.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedules/timeline/timeline.h"

namespace stagewright {

struct KernelChange {
    std::string name;
    Lane lane = Lane::Kernel;
    std::int64_t callsA = 0;
    std::int64_t callsB = 0;
    Nanos totalA = 0; // sum of durations over all ranks
    Nanos totalB = 0;

    Nanos change() const { return totalB - totalA; }
};

struct DeviceFigure {
    std::string key;   // "window_ns", as the column of the table device_time; "idle.launch_ns" of device_idle; "class.attention_ns" of kernel_classes
    std::string title; // "First to last"
    Nanos a = 0;       // summed over ranks
    Nanos b = 0;
};

struct DeviceChanges {
    std::vector<DeviceFigure> figures;
    std::vector<KernelChange> kernels; // by name and lane, of either run; largest change first
    std::string headline;              // "the devices of B …"; without a verdict, as one step has no spread
};

// O(kernels of both steps × log).
DeviceChanges compareDevices(const Timeline& a, int stepA, const Timeline& b, int stepB);

} // namespace stagewright
