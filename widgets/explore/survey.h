// Survey: the ticked schedules while one or two parameters vary. Points are simulated one by one and drawn as they
// arrive.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "widgets/explore/explore_question.h"

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

struct HeatPicture {
    ExploreQuestion question;
    ExploreParameter across = ExploreParameter::Microbatches;
    ExploreParameter up = ExploreParameter::Ranks;
    std::vector<double> valuesAcross, valuesUp;
    std::vector<std::string> schedules;
    std::vector<SweepRow> rows; // cell-major: (up, across, schedule)

    std::size_t cells() const { return valuesAcross.size() * valuesUp.size(); }
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
std::vector<SweepPoint> pointsOf(const LinesPicture& picture);
std::vector<SweepPoint> pointsOf(const HeatPicture& picture);

} // namespace stagewright
