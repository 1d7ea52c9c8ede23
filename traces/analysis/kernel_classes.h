// Time by kind of work on the devices.
#pragma once

#include <vector>

#include "traces/analysis/kernel_class.h"

namespace stagewright {

struct ClassTime {
    KernelClass of = KernelClass::Other;
    std::int64_t calls = 0;
    Nanos total = 0;             // sum of durations
    Nanos running = 0;           // sum over ranks of the time in which at least one of them runs
    std::vector<Nanos> byRank;   // of `running`
    SpanId longestSpan = noSpan; // the first of the longest
};

// Classes that occur in the step, largest total first. O(kernels of the step × log).
std::vector<ClassTime> analyseKernelClasses(const Timeline& timeline, int step);

} // namespace stagewright
