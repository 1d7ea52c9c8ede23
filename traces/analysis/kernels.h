// What ran on the devices below the ops: spans on the lanes Kernel and Copy, which Launch edges join to their ops
// (profiler/cupti). Timelines without such lanes give empty reports.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/timeline/timeline.h"
#include "traces/analysis/kernel_class.h"
#include "traces/run/run.h"

namespace stagewright {

struct KernelRow {
    std::optional<OpKind> kind; // of the op it belongs to; empty: of no op
    std::string name;
    Lane lane = Lane::Kernel;
    KernelClass of = KernelClass::Other;
    std::int64_t calls = 0;
    Nanos total = 0;   // sum of durations; simultaneous work counts twice
    double spread = 0; // standard deviation of the calls' durations, in ns
    Nanos shortest = 0;
    Nanos longest = 0;
    SpanId longestSpan = noSpan; // the first of that length

    Nanos mean() const { return calls > 0 ? total / calls : 0; }
};

struct KernelReport {
    std::vector<KernelRow> rows; // by total, largest first, then kind, name
    Nanos total = 0;             // over all rows
    std::int64_t calls = 0;
};

// One row for each kind of op, name and lane. O(kernels of the step × log).
KernelReport analyseKernels(const Timeline& timeline, int step);

// The operation of a kernel of NCCL or RCCL, or of a collective of Ascend's HCCL, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(…)" → "AllReduce"; "" for other
// kernels.
std::string collectiveOfKernel(std::string_view kernel);

bool hasKernels(const Timeline& timeline);         // spans on the lanes Kernel or Copy
std::string unknownWithoutKernels(const Run& run); // why the run has none; empty: it has
// Kernels of collectives and messages have a track of their own: they are communication, not computing.
bool isCollectiveTrack(const Track& track);
// How a span on lane Kernel or Copy came to the device, as far as the run says.
struct LaunchSeen {
    SpanId by = noSpan;        // op, message or named range that launched it
    std::optional<Nanos> time; // of the call on the host
};
LaunchSeen launchOf(const Timeline& timeline, SpanId work);
// The op a span on lane Kernel or Copy belongs to; noSpan: of no op, or launched from a range that is not an op.
SpanId ownerOf(const Timeline& timeline, const LaunchSeen& launch);
SpanId ownerOf(const Timeline& timeline, SpanId work);

} // namespace stagewright
