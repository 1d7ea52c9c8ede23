// A gap in one sentence.
#pragma once

#include "traces/analysis/bubbles.h"

namespace stagewright {

// "rank 2 waits 3.1 ms before 2B4: 3B4 on rank 3 ends at 12.4 ms and its gradient arrives 0.2 ms later." One sentence.
std::string explainGap(const Timeline& timeline, const Gap& gap);
// "Unknown" where ranks are missing (Timeline::missingRanks()); else the title of its cause, for an input by what the rank waits for: "Waiting for the gradient".
std::string_view titleOf(const Timeline& timeline, const Gap& gap);

} // namespace stagewright
