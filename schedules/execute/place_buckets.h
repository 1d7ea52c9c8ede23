// The list execution (place.h) of lists whose optimizers step a stage's gradients bucket by bucket, as they arrive
// (AxoNN, arXiv 2110.13005).
#pragma once

#include <span>

#include "schedules/check/checked_schedule.h"
#include "schedules/execute/place.h"

namespace stagewright {

// As place(). gradientBuckets: by stage, in how many buckets of one size a reduction beside compute brings its
// gradients; beyond the list, one. Of a rank whose list goes on behind an OPT the i-th n-th of an OPT waits for the
// i-th n-th of its reduction only. It then starts as early as it can run through: max(first bucket's arrival,
// reduction's end − (n−1)/n of its duration).
Result<SimResult> placeBuckets(const Schedule& schedule, std::span<const Nanos> durations, const Links& links,
                               std::span<const int> gradientBuckets, std::span<const Bytes> boundary = {},
                               const Channels& channels = {}, PlacePolicy policy = PlacePolicy::Strict);
// The compute() of a checked one, strictly: its cells and index are there already, so that each step of a recording
// only places.
Result<SimResult> placeBuckets(const CheckedSchedule& schedule, std::span<const Nanos> durations, const Links& links,
                               std::span<const int> gradientBuckets, std::span<const Bytes> boundary,
                               const Channels& channels = {});

} // namespace stagewright
