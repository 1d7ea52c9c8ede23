// Durations of whole ops of each kind, stage and rank, from ops of every form.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "schedules/timeline/timeline.h"

namespace stagewright {

struct FittedPair {
    OpKind a{};
    int stageA = 0;
    OpKind b{};
    int stageB = 0;
    int rank = 0;
    Nanos duration = 0;
};

struct FittedDurations {
    std::map<std::tuple<OpKind, int, int>, Nanos> whole;        // (kind, stage, rank)
    std::map<std::tuple<OpKind, int, int>, Nanos> ofMicrobatch; // (kind, stage, microbatch), where it differs
    // if both ops are also known alone and their interval is not the sum of both
    std::vector<FittedPair> pairs;
    // σ of the logarithm of whole, unpaired ops' durations around their median
    double jitter = 0;
    // CostModel::sliceStarts: the schedule's if its lengths explain the times of the slices to the nanosecond, else the
    // measured ones, over all ops. Empty: no op of a slice.
    std::vector<std::int64_t> sliceStarts;
    int stages = 0; // of busy ops
};

// Medians over the steps from firstStep on (for an even number the lower one: a value that occurred), from the first
// available of
//   whole ops    their duration
//   counts       the duration by microbatch
//   slices       the sum over the slices; halves likewise
//   pairs        one interval of two ops: divided by their processor times if known; else what remains beside an op
//                whose duration is known; else in proportion to the durations of their kinds on other stages, or 1 : 2
//                for F or I beside B
// An op counts as paired if another on its track has exactly the same interval.
//
// Microbatches: if at least half of all whole ops took exactly as long as another of their kind, stage and rank,
// nothing is noise and every difference counts; jitter is then 0. Else a microbatch of at least four steps counts whose
// median differs from that of all by more than 0.5 % and four standard errors. Jitter: 1.4826 × the median absolute
// deviation.
FittedDurations fitDurations(const Timeline& timeline, int firstStep);

} // namespace stagewright
