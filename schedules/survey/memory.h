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
// A point for each place with the schedules there, the frontier as a line, proven bounds dashed. The ids of its items are
// rows; those at one place are below each other.
Plot memoryPlot(const std::vector<SweepRow>& rows, const std::vector<ExploreBound>& bounds,
                const ExploreQuestion& question, ExploreMeasure measure);

} // namespace stagewright
