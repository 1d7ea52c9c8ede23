// Jobs for Jigsaw's packing (schedules/planner/job_packing.h) from recorded runs. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "schedules/base/result.h"
#include "traces/run/run.h"

namespace stagewright {

// What each rank of a run works in a step: the median over its measured steps of the time of its passes and of its
// optimizer, without messages and waits; and what it would without partial backward: what the same rank of the replica
// that goes back to the first layer works. In ns. Usage: the run has no such steps.
struct RecordedJob {
    std::string run;
    std::vector<Nanos> partial, full; // by rank
};
Result<RecordedJob> recordedJobOf(const Run& run);

// The jobs as a problem of the program jigsaw, as JSON, in µs, on as many GPUs as the largest job has ranks.
std::string jigsawProblem(std::span<const RecordedJob> jobs);

} // namespace stagewright
