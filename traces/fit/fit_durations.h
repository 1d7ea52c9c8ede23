// How long whole ops of each kind, stage and rank take, from ops of every form.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "schedules/timeline/timeline.h"

namespace stagewright {

struct FittedDurations {
    std::map<std::tuple<OpKind, int, int>, Nanos> whole; // (kind, stage, rank)
    // CostModel::sliceStarts: the schedule's where its lengths explain the times of the slices to the nanosecond, else the
    // measured ones, over all ops. Empty: no op of a slice.
    std::vector<std::int64_t> sliceStarts;
    int stages = 0; // of busy ops
};

// Medians over the steps from firstStep on (of an even number the lower one: a value that occurred), by what there is, the
// first of
//   whole ops    their duration
//   counts       the duration by microbatch
//   slices       the sum over the slices; halves likewise
//   pairs        one interval of two ops: parted by their processor times where known; else what is left beside an op whose
//                duration is known; else in proportion to what their kinds take on other stages, or 1 : 2 for F or I beside B
// An op counts as paired where another on its track has the very same interval.
FittedDurations fitDurations(const Timeline& timeline, int firstStep);

} // namespace stagewright
