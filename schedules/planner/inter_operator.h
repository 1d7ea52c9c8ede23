// Alpa's inter-operator plan (Zheng et al. 2022, arXiv 2201.12023, section 5): contiguous layers become stages, each on a
// submesh of the cluster, so that the sum of their times + (m − 1) × the slowest is least. All devices are used. A stage
// may have as many successors as its memory allows. Exact: for every time that may be the slowest a dynamic program finds
// the least sum, O(times × stages × layers² × devices × options).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"

namespace stagewright {

struct Submesh {
    int hosts = 1;
    int perHost = 1;
    int devices() const { return hosts * perHost; }
};

struct StageOption { // layers first to last on a submesh, by one way to parallelise them
    int first = 0, last = 0;
    int submesh = 0; // index
    int option = 0;  // a name of the way
    std::int64_t time = 0;
    std::int64_t successors = 0; // how many stages may follow; below 0: it does not fit
};

struct InterOperatorProblem {
    int layers = 0;
    int hosts = 1, perHost = 1;
    std::int64_t microbatches = 1;
    std::vector<Submesh> submeshes;
    std::vector<StageOption> options;
};

struct InterOperatorPlan {
    std::int64_t time = 0;
    std::vector<StageOption> stages;
    std::int64_t plans = 0; // as fast
    int crossings = 0;      // boundaries that leave a host, at the best placement of the stages
    std::vector<std::vector<int>>
        devices; // of each stage, so placed; host × devices of each + the device of the host; empty: side by
    // side their submeshes do not fit the hosts, and crossings mean nothing
};

// None: no plan fits. Usage: numbers out of range. Cancelled by the progress.
Result<std::optional<InterOperatorPlan>> planInterOperator(const InterOperatorProblem& problem,
                                                           const Progress& progress = {});

} // namespace stagewright
