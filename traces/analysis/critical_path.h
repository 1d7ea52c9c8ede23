// Critical path of a step across ranks: walked backwards from the busy span that ends last; each span's predecessor is
// the one that ended its wait (an input, or the span before it on the rank).
#pragma once

#include <vector>

#include "traces/step/step_ops.h"

namespace stagewright {

struct CriticalLink {
    SpanId span = noSpan;
    Nanos waitBefore = 0;     // between the predecessor's end and this start: transfer and launch
    bool crossesRank = false; // the predecessor ran on another rank
};

// In time order; empty where ranks are missing (Timeline::missingRanks()).
std::vector<CriticalLink> criticalPath(const StepOps& ops);

} // namespace stagewright
