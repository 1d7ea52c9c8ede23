// Launch gaps: time in which a device has nothing to run.
#pragma once

#include <optional>
#include <vector>

#include "traces/analysis/step_context.h"

namespace stagewright {

struct RankLaunchGaps {
    Nanos inside = 0; // of ops: time in which none of their kernels or copies ran
    // of that, until the launch of what ran next was called; empty: the run lacks the time of a launch
    std::optional<Nanos> late;
    Nanos before = 0; // ops: idle although the input was there (cause Launch)
    Nanos ops = 0;    // duration of the ops that have kernels

    Nanos exposed() const { return inside + before; }
};

// Launch gaps: time in which nothing of an op runs. Until what runs next is launched, the host is late; what passes
// from that call on, in the call, on the way or on the device, a trace can't tell apart. Ops without a kernel of their
// own have none inside.
struct LaunchGapReport {
    std::vector<RankLaunchGaps> ranks;
    Nanos window = 0; // of the step

    RankLaunchGaps all() const;              // the sum over ranks
    double exposedShare() const;             // exposed ÷ (ranks × window); 0 where the step is empty
    std::optional<double> lateShare() const; // (late + before) ÷ (ranks × window)

private:
    double shareOf(Nanos time) const;
};

Result<LaunchGapReport> analyseLaunchGaps(const StepContext& context);

} // namespace stagewright
