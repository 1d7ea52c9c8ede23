// A rank's work, ready for a timeline: its ops at their times, device work under the op that launched it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stop_token>
#include <string>
#include <vector>

#include "traces/foreign/foreign_trace.h"
#include "traces/import/op_ranges.h"

namespace stagewright {

// Gives device work the time and thread of its launch and drops the launches, which are as many as the kernels: those
// of messages stay, sorted. Does nothing where this was done. Stops early once a stop is requested.
void tieLaunches(ForeignRank& rank, const std::stop_token& stop);

inline constexpr std::uint32_t noOpRange = 0xffffffffu;

struct RankWork {
    std::vector<std::uint32_t> opOfDevice; // by ForeignRank::device: of RankOps::ops, or noOpRange
    // ops on the compute lane (busy kinds, optimizer, reduction), by start; times are disjoint
    std::vector<std::uint32_t> compute;
    std::vector<std::uint32_t> beside; // gathers, releases and reductions on threads of their own, by start
    std::int64_t projected = 0;        // ops whose times are now those of their kernels
    std::int64_t clipped = 0;          // ops whose start was moved to the end of the previous op
    Nanos overlap = 0;                 // by this much in total
    std::int64_t launched = 0;         // device spans under an op
};

// Device work belongs to the op on whose thread it was launched; to a backward if another thread launched it meanwhile
// (the framework's own); for ranges on the device to the one that contains its start. An op that launched kernels other
// than those of communication runs from the start of the first to the end of the last: changes RankOps::ops. Launches
// are tied. All of these return early, with a meaningless result, once a stop is requested.
RankWork placeWork(const ForeignRank& rank, RankOps& ops, const std::stop_token& stop);

// Named host ranges at the times of their kernels. Ranges that launched nothing have end < start.
struct DeviceRanges {
    std::vector<std::pair<Nanos, Nanos>> extent; // by ForeignRank::annotations
    // by ForeignRank::device: the innermost range it was launched in, or noOpRange
    std::vector<std::uint32_t> rangeOfDevice;
    // For communication kernels launched in a range of their library's, "nccl:all_to_all": index in
    // ForeignRank::device, that range.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ofLibrary;
};
DeviceRanges placeRanges(const ForeignRank& rank, const std::stop_token& stop);
// Puts the operation of communication kernels whose names hide it (kernel_class.h) into their shapes: as the trace's
// own arguments say, else as the library's range around the launch.
void nameOperations(ForeignRank& rank, const DeviceRanges& ranges);

inline constexpr Nanos notLaunched = std::numeric_limits<Nanos>::max(); // no launch is known

struct ForeignWork {
    Nanos start = 0;
    Nanos end = 0;
    std::uint32_t name = 0;          // of ForeignRank::names
    std::uint32_t op = noOpRange;    // of RankOps::ops
    std::uint32_t range = noOpRange; // of ForeignRank::annotations
    std::uint32_t item = 0;          // its index in ForeignRank::device
    Nanos launched = notLaunched;    // of the call on the host
};
// A stream's kernels, or its copies, in order of time.
struct DeviceTrack {
    bool copy = false;
    std::string name;
    std::vector<ForeignWork> work;
};
// The rank's device work by tracks, with what `work` and `ranges` say of it: takes all three and frees their memory
// along the way. Tracks by name, kernels first.
std::vector<DeviceTrack> takeDevice(ForeignRank& rank, RankWork& work, DeviceRanges& ranges,
                                    const std::stop_token& stop);

// The step of what belongs to no op, at a time of the host; outsideSteps (step_number.h) before, after and between
// marked ones.
int stepAt(const RankOps& ops, Nanos time);
// The step of work on a device: that of its launch; without one the step whose range on the device holds its start, on
// its own stream or on the others of its GPU if they agree; else outsideSteps. One step in all has everything, unless
// it is marked.
int stepOf(const RankOps& ops, const ForeignRank& rank, const ForeignSpan& work, Nanos launched);
int stepOf(const RankOps& ops, const ForeignRank& rank, const DeviceSpan& work);
// of its kernel, else at its start on the host
int stepOf(const RankOps& ops, const ForeignRank& rank, const ForeignMessage& message);

// Memory by category from the allocator's events, as the trace names it, else by who allocates and who frees it: what a
// forward leaves allocated are activations of its microbatch; what a backward leaves until the optimizer, the next step
// or the end are gradients, in every step; what the optimizer leaves is its state; memory freed by the op that
// allocated it is workspace. In use before the first event, or allocated before the first op and never freed: weights.
// Takes the rank's events.
std::vector<MemoryEvent> memoryOf(ForeignRank& rank, const std::vector<OpRange>& hostOps, const RankOps& ops,
                                  int rankNumber, const std::stop_token& stop);

} // namespace stagewright
