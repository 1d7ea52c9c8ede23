// A planner's problem and its answer as JSON (docs/planners.md): {"program": "alpa_inter", "input": {…}}.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"

namespace stagewright {

struct PlannerInfo {
    std::string_view program; // "alpa_inter"
    std::string_view title;   // "Alpa: layers on submeshes"
};
std::span<const PlannerInfo> allPlanners();

struct PlannerAnswer {
    std::string program;
    std::string json; // an object, indented
    bool fits = true; // there is a plan
};
// Unreadable: not such a problem, with the place in it; Usage: numbers that a planner refuses; Cancelled.
Result<PlannerAnswer> solveProblem(std::string_view text, const Progress& progress = {});

} // namespace stagewright
