// The whole step: what its ops take, and with them the gathers, reductions and optimizer steps before, beside and
// behind them.
#pragma once

#include "schedules/timeline/timeline.h"

namespace stagewright {

struct StepExtent {
    Nanos begin = 0;
    Nanos end = 0;
    Nanos length() const { return end - begin; }
};

// From the first start to the last end of the step's F, B, I, W, R, OPT, UNSHARD, RESHARD and REDUCE_GRAD on any rank,
// on compute lanes and beside them. Empty (0, 0): the step has none of F, B, I, W and R. O(spans of the step).
StepExtent wholeStep(const Timeline& timeline, int step);
// Only ops that the run's lists have: a recorder's own gradient norm and optimizer behind the lists are left out.
// lists: the run's schedule.
StepExtent listedStep(const Timeline& timeline, int step, const Schedule& lists);

} // namespace stagewright
