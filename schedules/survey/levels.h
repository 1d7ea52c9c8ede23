// LevelsSurvey: the rank of schedules by how much of the truth is counted: a closed formula and a simulation at unit costs, the
// same with the costs of a machine, and with its messages. Where two change places, what the next level adds to both says
// why. Pure; any thread.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "schedules/survey/explore_question.h"

namespace stagewright {

enum class TruthLevel : std::uint8_t {
    Formula,  // the published one, F = I = W = 1
    Units,    // simulated, F = I = W = 1
    Costs,    // simulated, with the question's costs
    Messages, // and its latency
    Measured, // as it was recorded, where it was
};
inline constexpr std::size_t truthLevelCount = 5;
std::string titleOf(TruthLevel level);

struct LevelRow {
    std::string schedule;
    std::array<std::optional<double>, truthLevelCount>
        step;                                 // rank shares; none: there is no formula, or no such schedule
    std::array<int, truthLevelCount> place{}; // from 1; those as fast share it; 0: none
};
struct LevelsAnswer {
    ExploreQuestion question;
    std::vector<LevelRow> rows;     // by the last level
    std::vector<std::string> flips; // in sentences
    bool complete = true;
    bool measured() const; // any schedule was
};
// measured: recorded steps of some schedules, in rank shares, by name.
LevelsAnswer levelsSurvey(const ExploreQuestion& question, const std::vector<std::string>& schedules,
                          const Progress& progress = {}, const std::map<std::string, double>& measured = {});
SurveyTable levelsTable(const LevelsAnswer& answer);
Plot levelsPlot(const LevelsAnswer& answer); // places over the levels; ids count the rows

} // namespace stagewright
