// Cost lines for Cephalo's division (schedules/planner/uneven_devices.h) from recorded runs of replicas that have the
// whole model each. Pure.
#pragma once

#include <span>
#include <string>

#include "schedules/base/result.h"
#include "traces/run/run.h"

namespace stagewright {

// A problem of the program cephalo, in ms and GB (10⁹ bytes), a device for each rank. Each run is a point of its lines:
// what the passes of a microbatch take on that rank by its samples, least squares, neither slope nor start below 0; of
// one size of microbatch a line through 0. Memory: the rank's peak less what it owns of the state; activations in
// proportion to the samples that are held at once, the rest as a0. State and samples are the first run's, caps those that
// each rank was given. Usage: a run has no such ranks, or no caps.
struct RecordedLines {
    std::string problem; // as JSON, with the words
    std::string words;   // whose lines, and what is not known of them
};
Result<RecordedLines> cephaloProblem(std::span<const Run> runs);

} // namespace stagewright
