// The two clocks of a CPU recording. Both in integer nanoseconds; any thread may call.
#pragma once

#include <ctime>

#include "schedules/base/units.h"

namespace stagewright {

inline Nanos readClock(clockid_t clock)
{
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<Nanos>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// Wall stamps of all ranks share this clock (CLOCK_MONOTONIC, read without a system call).
inline Nanos monotonicNow() { return readClock(CLOCK_MONOTONIC); }

// CPU time the calling thread has used. A system call: about 0.2 µs.
inline Nanos threadCpuNow() { return readClock(CLOCK_THREAD_CPUTIME_ID); }

} // namespace stagewright
