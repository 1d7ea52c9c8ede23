// Time that devices wait for the host.
#pragma once

#include <vector>

#include "schedules/timeline/timeline.h"

namespace stagewright {

struct RankLaunchGaps {
    Nanos inside = 0; // of ops: time in which none of their kernels or copies ran
    Nanos before = 0; // ops: idle although the input was there (cause Launch)
    Nanos ops = 0;    // duration of the ops that have kernels
};

// Launch gaps: time a device waits for the host. Ops without a kernel of their own have none inside.
struct LaunchGapReport {
    std::vector<RankLaunchGaps> ranks;
    Nanos window = 0; // of the step

    Nanos total() const;
    double exposedShare() const; // total ÷ (ranks × window); 0 where the step is empty
};

Result<LaunchGapReport> analyseLaunchGaps(const Timeline& timeline, int step);

} // namespace stagewright
