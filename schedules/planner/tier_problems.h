// Problems of schedules/tiers as JSON (docs/planners.md): rows of the table in problem.cpp.
#pragma once

#include <nlohmann/json.hpp>

#include "schedules/base/json_input.h"
#include "schedules/base/progress.h"
#include "schedules/base/result.h"

namespace stagewright {

Result<nlohmann::ordered_json> solveResidency(JsonInput& in, const Progress& progress);
Result<nlohmann::ordered_json> solveChunks(JsonInput& in, const Progress& progress);
Result<nlohmann::ordered_json> solveBuckets(JsonInput& in, const Progress& progress);
Result<nlohmann::ordered_json> solveOwners(JsonInput& in, const Progress& progress);
Result<nlohmann::ordered_json> solveFilling(JsonInput& in, const Progress& progress);

} // namespace stagewright
