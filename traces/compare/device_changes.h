// What changed on the devices between two runs' steps, from kernels and copies alone: for traces whose ranges are not
// recognised as ops.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "schedules/timeline/timeline.h"
#include "traces/compare/kernel_matching.h"

namespace stagewright {

struct DeviceFigure {
    std::string key;        // "window_ns", as the column of the table device_time; "idle.launch_ns" of device_idle;
                            // "class.attention_ns" of kernel_classes; "communication.AllReduce_ns" of
                            // exposed_communication, of all sizes
    std::string title;      // "First to last"
    std::optional<Nanos> a; // summed over ranks; nothing: unknown, as CUDA graphs were traced as a whole
    std::optional<Nanos> b;
    // how far the steps of a run lie apart, of the run where it is more; nothing: neither has several steps, or it is
    // not measured
    std::optional<Nanos> noise;

    std::optional<Nanos> change() const { return a && b ? std::optional(*b - *a) : std::nullopt; }
    bool beyondNoise() const { return change() && (!noise || std::llabs(*change()) > *noise); }
};

struct DeviceChanges {
    std::vector<DeviceFigure> figures;
    std::vector<KernelChange> kernels; // of either run; largest change first
    std::string headline;              // "the devices of B …"; without a verdict, as one step has no spread
    // what changed by 1 % of A's time or more, and beyond the noise: computing, communicating, idle with their parts,
    // the kernel
    std::vector<std::string> why;
};

// O(kernels of both steps × log), and of at most sixteen further steps of each. Once stop is requested: what there is
// so far.
DeviceChanges compareDevices(const Timeline& a, int stepA, const Timeline& b, int stepB,
                             const std::stop_token& stop = {});

} // namespace stagewright
