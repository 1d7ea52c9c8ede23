// What this process has taken so far, as benchmarks print it.
#pragma once

#include <ctime>

#include <sys/resource.h>

namespace stagewright::bench {

// CPU time of all threads: a busy machine does not stretch it.
inline double cpuSeconds()
{
    std::timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// The most memory it had at once, in MiB.
inline double peakMebibytes()
{
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) / 1024;
}

} // namespace stagewright::bench
