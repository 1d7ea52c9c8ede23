// Correlation: joins what the GPU did (GpuRecord) to the ops and messages of one step by the external ids that the
// engine pushed, and gives the step the device's times. No CUDA here; the order of records does not matter.
//
//     Result<DeviceStep> device = correlate(trace, *record, recorder's origin);
//     placeOnDevice(*record, *device);    // op times and messages become the device's; kernels hang below their ops
//     timelineOf(*record);
//
// Clock: records carry CLOCK_MONOTONIC (cupti_session.h), the clock of RankRecorder; origin is what StepRecord's times
// count from. GPU stamps are interpolated by CUPTI: a kernel may seem to start up to 1 µs before its launch; up to 1 µs
// is clamped and counted, more is counted only.
#pragma once

#include <string>
#include <vector>

#include "profiler/cupti/gpu_record.h"
#include "profiler/record/step_record.h"

namespace stagewright {

// What did not fit; all zero in a whole recording. The sum over steps is a fact of the run (trace_facts.h).
struct GpuTraceCounts {
    std::int64_t work = 0;            // kernels, copies and memsets joined to ops and messages
    std::int64_t clamped = 0;         // began less than 1 µs before their launch: set to the launch
    std::int64_t early = 0;           // began even earlier: kept as they are
    std::int64_t unstamped = 0;       // start or end 0: skipped
    std::int64_t reversed = 0;        // ended before they began: skipped
    std::int64_t offClock = 0;        // more than a second before the step or 1,000 s after it: skipped
    std::int64_t repeated = 0;        // the same record twice: counted once
    std::int64_t ambiguous = 0;       // launches with two different ids of one stack: the lower one counts
    std::int64_t foreignIds = 0;      // external ids of another tool
    std::int64_t unowned = 0;         // work without an op or message
    std::int64_t launchesWithout = 0; // launches with an id whose work was never delivered
    std::int64_t opsWithout = 0;      // busy ops without any known work on the device
    std::int64_t halfMessages = 0;    // collectives with one end missing: wait and transfer can't be separated
    // ops that began before the previous one on their rank had ended: moved to its end
    std::int64_t overlapping = 0;

    GpuTraceCounts& operator+=(const GpuTraceCounts& other);
    bool operator==(const GpuTraceCounts&) const = default;
};

struct DeviceInterval {
    Nanos begin = -1; // −1: nothing is known; times from origin
    Nanos end = -1;
    bool known() const { return end >= 0 || begin >= 0; }
    bool operator==(const DeviceInterval&) const = default;
};

struct DeviceOp {
    // from the start of its first to the end of its last kernel, copy or memset; messages apart
    DeviceInterval interval;
    Nanos busy = 0;      // part of it in which at least one of them ran; the rest is launch-bound
    Nanos launched = -1; // start of its first launch on the CPU; −1: not known
    std::int32_t pieces = 0;
    Nanos gaps() const { return interval.end - interval.begin - busy; }
    bool operator==(const DeviceOp&) const = default;
};

// Both ends of a message. Wait is until the other end is there too, transfer from then on. A copy is both ends at once,
// without waiting; so is a message whose sender is done before the receiver starts (small ones, which the receiver's
// buffer takes).
struct DeviceMessage {
    DeviceInterval send;
    DeviceInterval receive;
    Nanos transferBegin = -1;
    Nanos sendWait = 0;
    Nanos receiveWait = 0;
    bool known() const { return transferBegin >= 0; }
    bool operator==(const DeviceMessage&) const = default;
};

struct DeviceWork {
    std::int32_t rank = -1;    // −1: not even the stream is known
    std::int32_t op = -1;      // index into StepRecord::ops[rank]; −1: of a message, or nobody's
    std::int32_t message = -1; // index into StepRecord::messages
    Nanos begin = 0;
    Nanos end = 0;
    Lane lane = Lane::Kernel; // Kernel, Copy (copies and memsets), Other (overhead, synchronization)
    bool collective = false;
    std::string name;    // for people
    Nanos launched = -1; // when the host called for it; −1: not recorded
    auto operator<=>(const DeviceWork&) const = default;
};

struct DeviceStep {
    std::vector<std::vector<DeviceOp>> ops; // as StepRecord::ops
    std::vector<DeviceMessage> messages;    // as StepRecord::messages
    std::vector<DeviceWork> work;           // sorted
    GpuTraceCounts counts;
    Nanos overhead = 0; // of CUPTI itself (buffers, instrumentation) within the step
    bool operator==(const DeviceStep&) const = default;
};

// Records of other steps may be among them; they are skipped. O(n log n) in records. Fails (Usage) where the schedule
// is too large for the ids.
Result<DeviceStep> correlate(const GpuTrace& trace, const StepRecord& step, Nanos origin);

} // namespace stagewright
