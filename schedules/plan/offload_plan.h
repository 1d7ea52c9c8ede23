// Which activations to offload, and when to reload them, so that a schedule fits a cap: the order of its other ops
// stays. Few choices are tried all; else a search from the rules of model/offload.h by single changes.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/offload.h"

namespace stagewright {

struct OffloadOptions {
    std::int64_t most = 20'000'000; // ops simulated in all trials together
    std::uint64_t seed = 1;
    bool recompute = false;             // stages may be recomputed, instead or as well; costs then have their R
    std::function<bool()> stopped = {}; // asked between trials; may be empty
};

struct OffloadPlan {
    Schedule schedule;
    Nanos makespan = 0;
    Nanos bound = 0; // without any copy: they only make ops wait, so no choice is shorter
    int offloads = 0;
    std::vector<bool> recomputed = {}; // by stage; empty: none may be
    std::int64_t trials = 0;
    bool all = false; // every choice was tried: no other one is shorter under the cap
};

// caps: of activations, by rank. Invalid where no choice that was tried fits, with the rank, by how much and, where all
// were tried, that none does; the errors of simulate(). Of equally short ones it takes the one with fewer offloads,
// then with fewer recomputed stages. With recomputation never longer than without: of up to six stages every set is
// tried, else none, all, each alone, and the first and last ones.
// Deterministic.
Result<OffloadPlan> planOffloads(const Schedule& schedule, const CostModel& costs, const std::vector<Bytes>& caps,
                                 const OffloadOptions& options = {});

} // namespace stagewright
