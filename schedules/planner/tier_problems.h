// Problems of schedules/tiers as JSON (docs/planners.md): rows of the table in problem.cpp.
#pragma once

#include "schedules/planner/solved.h"

namespace stagewright {

Result<SolvedProblem> solveResidency(JsonInput& in, const Progress& progress);
Result<SolvedProblem> solveChunks(JsonInput& in, const Progress& progress);
Result<SolvedProblem> solveBuckets(JsonInput& in, const Progress& progress);
Result<SolvedProblem> solveOwners(JsonInput& in, const Progress& progress);
Result<SolvedProblem> solveFilling(JsonInput& in, const Progress& progress);
nlohmann::ordered_json tierExample(std::string_view program); // null: none of these

} // namespace stagewright
