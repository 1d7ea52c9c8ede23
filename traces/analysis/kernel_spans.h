// The spans that ran on devices: those of the lanes Kernel and Copy.
#pragma once

#include <utility>

#include "schedules/timeline/timeline.h"

namespace stagewright {

inline bool isDeviceLane(Lane lane) { return lane == Lane::Kernel || lane == Lane::Copy; }

// visit(track, id, span) for each of them in the step, track by track in order of time.
template <typename Visit>
void eachDeviceSpan(const Timeline& timeline, int step, Visit&& visit)
{
    for (const Track& track : timeline.tracks()) {
        if (!isDeviceLane(track.lane)) continue;
        const auto [first, last] = timeline.stepRange(track, step);
        for (SpanId id = first; id < last; ++id)
            if (const Span& span = timeline.spans()[id]; span.step == step) visit(track, id, span);
    }
}

} // namespace stagewright
