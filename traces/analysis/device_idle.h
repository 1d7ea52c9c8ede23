// Why a rank's devices do not compute, from kernels, copies and the times of their launches: the time from the step's
// first kernel or copy to the end of its last, split without rest. Host waits and waits between kernels are those of
// HolisticTraceAnalysis' idle time breakdown, taken over all streams of a device (docs/numbers.md, "Time without
// computing"). Needs no ops.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/timeline/timeline.h"

namespace stagewright {

enum class DeviceState : std::uint8_t {
    Computing,   // a kernel runs whose class is not communication
    Collective,  // only communication runs, a collective among it
    SendReceive, // … only sends and receives
    Copying,     // only copies or fills run
    Launch,      // nothing runs: what runs next was launched after everything before had ended
    Sync,        // … and the host waited for the device in a synchronising call
    Between,     // nothing runs for less than betweenKernels, though the next was launched
    Queued,      // nothing runs, though the next was launched: it waits for an event, or for its launch to arrive
    Unknown,     // nothing runs, and the trace does not say when the next was launched
};
inline constexpr std::size_t deviceStateCount = 9;
std::string_view toText(DeviceState state);  // "send_receive"
std::string_view titleOf(DeviceState state); // "Send, receive"
inline constexpr Nanos betweenKernels = 30;  // HolisticTraceAnalysis' default

struct RankDeviceIdle {
    int rank = 0;
    int gpu = -1;                               // where the rank has several; −1: the only one
    std::array<Nanos, deviceStateCount> time{}; // by DeviceState
    Nanos window = 0;                           // the sum of `time`
    std::int64_t lateLaunches = 0;              // gaps of cause Launch or Sync
    SpanId longestGapBefore = noSpan;           // what ran after the longest gap
    Nanos longestGap = 0;
    // among what computes: CUDA graphs traced as a whole, of which nobody knows what communicates
    bool wholeGraphs = false;

    Nanos of(DeviceState state) const { return time[static_cast<std::size_t>(state)]; }
};

// By rank, and by GPU where a rank has several; one without kernels and copies in the step has window 0. O(kernels of
// the step × log).
std::vector<RankDeviceIdle> analyseDeviceIdle(const Timeline& timeline, int step);
// "devices compute 12.0 % of their time; 40.1 % they wait for launches by the host, 30.2 % for collectives": causes of
// 1 % and more, largest first. Empty where nothing ran.
std::string deviceIdleSentence(const std::vector<RankDeviceIdle>& ranks);
// A call in which the host waits for the device: "cudaStreamSynchronize", "hipDeviceSynchronize",
// "cuCtxSynchronize_v2".
bool isSynchronisingCall(std::string_view name);
// The name of a graph on a device whose kernels were not traced one by one: what ran in it is unknown.
inline constexpr std::string_view wholeGraph = "CUDA graph";
bool isGraphLaunch(std::string_view name); // of the host: it launches all that a CUDA or HIP graph holds

} // namespace stagewright
