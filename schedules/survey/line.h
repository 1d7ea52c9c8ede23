// Over one parameter: some schedules while it varies. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "schedules/survey/explore_question.h"

namespace stagewright {

struct LinesPicture {
    ExploreQuestion question;
    ExploreParameter across = ExploreParameter::Microbatches;
    std::vector<double> values;
    std::vector<std::string> schedules;
    std::vector<SweepRow> rows; // schedule-major; not done: pending

    const SweepRow& row(std::size_t schedule, std::size_t value) const
    {
        return rows[schedule * values.size() + value];
    }
};
LinesPicture linesOf(const ExploreQuestion& question, ExploreParameter across, std::vector<std::string> schedules);

// The points to simulate, in the order of `rows`.
std::vector<Setup> pointsOf(const LinesPicture& picture);
SurveyTable lineTable(const LinesPicture& picture); // of the rows that are done
// A line for each schedule; hollow dots are over the cap. The ids of its items are rows.
Plot linePlot(const LinesPicture& picture, ExploreMeasure measure);

} // namespace stagewright
