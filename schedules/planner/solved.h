// What a planner's solver gives for a problem: its answer and its picture.
#pragma once

#include <nlohmann/json.hpp>

#include "schedules/base/json_input.h"
#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "schedules/planner/pictures.h"

namespace stagewright {

struct SolvedProblem {
    nlohmann::ordered_json json;
    PlannerPicture picture;
};
using ProblemSolver = Result<SolvedProblem> (*)(JsonInput& in, const Progress& progress);

} // namespace stagewright
