// What ranks had on their hosts while copies had moved it there.
#pragma once

#include <vector>

#include "schedules/timeline/timeline.h"

namespace stagewright {

// Most bytes in a step, by rank; empty where nothing was moved. step −1: of all steps.
std::vector<Bytes> hostPeakByRank(const Timeline& timeline, int step);

} // namespace stagewright
