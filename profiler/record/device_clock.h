// DeviceClock: when a device did the requested work. Ops are issued long before they run; the recorder asks for a stamp
// where it would read the clock, and for its time once the device is done. One per rank, on its thread.
#pragma once

#include <cstdint>

#include "profiler/record/clock.h"

namespace stagewright {

class DeviceClock {
public:
    virtual ~DeviceClock() = default;
    virtual std::int64_t stamp() = 0;
    // While no work is pending: CLOCK_MONOTONIC. Increases with the stamps.
    virtual Nanos timeOf(std::int64_t stamp) = 0;
    virtual void forget() = 0; // all stamps so far
};

} // namespace stagewright
