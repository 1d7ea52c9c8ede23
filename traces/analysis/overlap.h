// Communication overlap: a transfer is hidden while its receiving rank is busy, exposed while it is not.
#pragma once

#include <span>
#include <vector>

#include "traces/step/step_ops.h"

namespace stagewright {

struct OverlapReport {
    Nanos commTime = 0; // sum over messages: from the producer's end to the arrival
    Nanos hiddenTime = 0;
    Nanos exposedTime = 0; // commTime − hiddenTime
    std::int64_t messages = 0;
    std::vector<Nanos> commByRank; // by receiving rank
    std::vector<Nanos> exposedByRank;
};

OverlapReport analyseOverlap(const StepOps& ops, std::span<const Crossing> crossings); // of these ops

} // namespace stagewright
