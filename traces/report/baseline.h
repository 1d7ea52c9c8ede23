// What the headline is compared with: 1F1B with one stage per rank, simulated with the run's own costs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"

namespace stagewright {

struct Baseline {
    std::string name;
    double bubbleFraction = 0;
    Nanos makespan = 0;
    std::vector<Bytes> peakActivation; // by rank
};

// 1F1B over the schedule's ranks under `costs`, a rank's chunks added up. None for one rank or for copies of a stage.
std::optional<Baseline> baselineOf(const Schedule& schedule, const CostModel& costs);

} // namespace stagewright
