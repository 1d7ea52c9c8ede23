// Memory against time: every schedule of the library for a shape, costs, latency and a cap, with the frontier and proven
// bounds. Pure; any thread.
#pragma once

#include <vector>

#include "schedules/survey/explore_question.h"

namespace stagewright {

// The points to simulate: the library with its variants.
std::vector<Setup> memoryPoints(const ExploreQuestion& question);
// Rows that no other one within the cap beats in both, stale weights left out; by rising peak.
std::vector<std::size_t> memoryFrontier(const std::vector<SweepRow>& rows, const ExploreQuestion& question);
SurveyTable memoryTable(const std::vector<SweepRow>& rows, const ExploreQuestion& question);

} // namespace stagewright
