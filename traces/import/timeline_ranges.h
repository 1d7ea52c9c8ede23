// The named ranges of a run's timeline, as the readers of traces give them: so that rules can be tried on a run that
// was imported.
#pragma once

#include <vector>

#include "schedules/timeline/timeline.h"
#include "traces/foreign/foreign_trace.h"

namespace stagewright {

struct TimelineRanges {
    std::vector<ForeignRank> ranks; // by rank: names, threads, annotations, and device work with its launches
    bool messages = false;          // they send to each other
};

// Ranges at their times on the host. Empty ranks if the run was imported without any. O(spans).
TimelineRanges rangesOf(const Timeline& timeline);

// Whether a track holds named ranges at their times on the host.
bool isRangeTrack(const Track& track);

} // namespace stagewright
