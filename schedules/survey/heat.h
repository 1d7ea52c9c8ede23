// Over two parameters: which of some schedules takes the shortest step within the cap, cell by cell. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "schedules/survey/explore_question.h"

namespace stagewright {

struct HeatPicture {
    ExploreQuestion question;
    ExploreParameter across = ExploreParameter::Microbatches;
    ExploreParameter up = ExploreParameter::Ranks;
    std::vector<double> valuesAcross, valuesUp;
    std::vector<std::string> schedules;
    std::vector<SweepRow> rows; // cell-major: (up, across, schedule)

    std::size_t cells() const { return valuesAcross.size() * valuesUp.size(); }
    double column(std::size_t cell) const { return static_cast<double>(cell % valuesAcross.size()); }
    double line(std::size_t cell) const { return static_cast<double>(cell / valuesAcross.size()); }
    ExploreQuestion questionOf(std::size_t cell) const;
    const SweepRow& row(std::size_t cell, std::size_t schedule) const
    {
        return rows[cell * schedules.size() + schedule];
    }
    bool done(std::size_t cell) const; // every schedule of it
    // The synchronous schedule with the shortest step within the cap, the first of equals. −1: none is possible.
    int winner(std::size_t cell) const;
};
HeatPicture heatOf(const ExploreQuestion& question, ExploreParameter across, ExploreParameter up,
                   std::vector<std::string> schedules);

// The points to simulate, in the order of `rows`.
std::vector<Setup> pointsOf(const HeatPicture& picture);
// The winner of each cell that is done.
SurveyTable heatTable(const HeatPicture& picture);

enum class HeatShows {
    Winner, // a letter and a colour for each schedule that wins somewhere, the most frequent first
    Value,  // what the measure of the winner is
};
// The ids of its items are cells.
Plot heatPlot(const HeatPicture& picture, ExploreMeasure measure, HeatShows shows);

} // namespace stagewright
