// Jigsaw's packing of jobs on shared GPUs: each job has workers of different length, as partial backward makes them, on
// GPUs of their own; all jobs go on at one rate. The least period is that of the fullest GPU. Exact by branch and bound for
// as many workers as fit into the node limit; else the best that was found, with the bound. Not synchronous training.
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"

namespace stagewright {

struct PackingProblem {
    int gpus = 1;
    std::vector<std::vector<std::int64_t>> jobs; // by job: a worker's iteration
};
struct Packing {
    std::int64_t fifo = 0; // as they come: each worker on the emptiest GPU that its job does not use; no search
    std::int64_t gang = 0; // every worker holds its GPU as long as its job's longest does
    std::int64_t packed = 0;
    bool proven = true;    // gang and packed are the least
    std::int64_t work = 0; // of all workers: work ÷ (GPUs × packed) is the utilisation
    // max(work ÷ GPUs, longest worker), in GPU-ths: no period is shorter where workers change places
    std::int64_t rotatedNumerator = 0, rotatedDenominator = 1;
    std::vector<std::vector<int>> places; // of packed: GPU by job and worker
};
Result<Packing> packJobs(const PackingProblem& problem, const Progress& progress = {});

} // namespace stagewright
