// TraceFacts: how far a run's GPU trace can be trusted and what it cost, gathered over its steps; stored with the run
// as facts of its environment and reported in sentences.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "profiler/cupti/correlate.h"

namespace stagewright {

// Why a recording has no GPU trace, or not a whole one.
enum class TraceState : std::uint8_t {
    Off,      // not requested
    Attached, // records were taken
    Conflict, // another profiler holds the one place CUPTI has
    Failed,   // CUPTI is missing, or refuses
};

struct TraceFacts {
    TraceState state = TraceState::Off;
    std::string reason;    // of Conflict and Failed, as CUPTI or the loader says
    int cuptiVersion = 0;  // CUPTI_API_VERSION of the library, 0: unknown
    bool detached = false; // after the last step: every kind is off and no buffer is out
    std::int64_t steps = 0;
    GpuTraceCounts counts;
    std::int64_t dropped = 0;
    std::int64_t damagedBuffers = 0;
    std::int64_t unknownRecords = 0;
    bool truncated = false;
    Nanos overhead = 0;   // CUPTI's own, as it reports it
    Nanos tracedStep = 0; // median step time with and without tracing; 0: not measured
    Nanos untracedStep = 0;

    void add(const GpuTrace& trace, const DeviceStep& step);
    // Medians; of an even number the lower of the two in the middle. Nothing changes where one of them is empty.
    void setCost(std::span<const Nanos> traced, std::span<const Nanos> untraced);
    double cost() const; // traced ÷ untraced − 1; 0: not measured

    // Nothing is missing from the picture: no record dropped, unstamped, damaged or without its op, and no op without
    // its work.
    bool whole() const;

    // For the run's environment: "gpu_trace" = "whole" | "incomplete" | "off" | "another profiler is attached" |
    // "failed: …", and the figures under keys that start with "gpu_trace_"; counts that are 0 are left out.
    std::vector<std::pair<std::string, std::string>> environment() const;
    // What a user has to know, one sentence each, lower case, no full stop; empty: nothing.
    std::vector<std::string> warnings() const;
};

} // namespace stagewright
