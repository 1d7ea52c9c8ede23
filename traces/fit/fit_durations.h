// How long whole ops of each kind, stage and rank take, from ops of every form.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "schedules/timeline/timeline.h"

namespace stagewright {

struct FittedPair {
    OpKind a = OpKind::Forward;
    int stageA = 0;
    OpKind b = OpKind::Forward;
    int stageB = 0;
    int rank = 0;
    Nanos duration = 0;
};

struct FittedDurations {
    std::map<std::tuple<OpKind, int, int>, Nanos> whole; // (kind, stage, rank)
    std::map<std::tuple<OpKind, int, int>, Nanos> ofMicrobatch; // (kind, stage, microbatch), where it differs
    std::vector<FittedPair> pairs; // where both ops are known alone and their interval is not the sum of both
    double jitter = 0; // σ of the logarithm of whole, unpaired ops' durations around their median
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
//
// Microbatches: where at least half of all whole ops took exactly what another of their kind, stage and rank took, time has no
// noise and every difference counts; jitter is 0 then. Else a microbatch of at least four steps counts whose median differs from
// that of all by more than 0.5 % and four standard errors. Jitter: 1.4826 × the median absolute deviation.
FittedDurations fitDurations(const Timeline& timeline, int firstStep);

} // namespace stagewright
