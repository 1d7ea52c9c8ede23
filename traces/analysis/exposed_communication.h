// Communication of devices that no computing hides.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedules/timeline/timeline.h"

namespace stagewright {

struct ExposedCommunication { // of the kernels of one operation and size, each for itself: simultaneous ones both count
    std::string name;
    // of their sizes: a power of two, and less than twice as much; nothing: the trace has no sizes
    std::optional<Bytes> least;
    Bytes bytes = 0; // sum
    std::int64_t calls = 0;
    Nanos total = 0;
    Nanos hidden = 0;  // while their rank's devices compute
    Nanos longest = 0; // exposed part of one call
    SpanId longestExposed = noSpan;
    // Calls whose other ranks are in the traces: until the last rank enters they wait, then bytes move.
    std::int64_t matched = 0;
    Nanos waiting = 0;
    Nanos transfer = 0;
    Bytes transferred = 0; // sum of their sizes
    double busBytes = 0;   // sum of size × busFactor()
    bool bus = true;       // each has a factor
    int waitedFor = -1;    // the rank that entered last for most of the waiting; −1: nobody waits
    Nanos waitedForBy = 0; // of the waiting

    Nanos exposed() const { return total - hidden; }
};

// One row for each operation and size class. Largest exposed time first. O(kernels of the step × log).
std::vector<ExposedCommunication> analyseExposedCommunication(const Timeline& timeline, int step);

} // namespace stagewright
