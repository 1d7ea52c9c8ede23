// StateSurvey: what replicas that share weights, gradients and optimizer state need and take: schedules × the four ZeRO
// stages, simulated with a model's sizes on a device. Pure; any thread.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "schedules/model/collective_costs.h"
#include "schedules/model/shard_rules.h"
#include "schedules/survey/survey.h"
#include "schedules/timeline/timeline.h"

namespace stagewright {

struct StateQuestion {
    int ranks = 8; // of one pipeline
    int microbatches = 32;
    int chunks = 0; // 0: schedule default
    std::string model = "gpt-6.2b";
    std::string device = "a100";
    int replicas = 8;
    ShardRules rules;
    CollectiveCosts collectives; // `within` is the device's own link
    double memory = 0;           // bytes a rank has; 0: the device's
    bool operator==(const StateQuestion&) const = default;

    static StateQuestion of(const SurveyQuestion& question);
    double capacity() const;   // bytes; the device's if none is given
    std::string setup() const; // in a sentence
};

// A rank's bytes by MemoryCategory when it holds most.
using StateBytes = std::array<Bytes, memoryCategoryCount>;

struct StateCell {
    bool done = false;
    std::string error; // why it can't be simulated
    Nanos step = 0;    // with gathers, reductions and the optimizer
    int rank = 0;      // the fullest
    StateBytes held{};
    double gathered = 0; // bytes that the fullest rank receives in gathers a step, and in reductions
    double reduced = 0;

    bool good() const { return done && error.empty(); }
    Bytes peak() const;
    bool over(const StateQuestion& question) const; // more than a rank has
};

struct StateRow {
    std::string schedule;
    std::array<StateCell, 4> cells; // by ShardLevel
};

StateCell stateCell(const StateQuestion& question, const std::string& schedule, ShardLevel level);
// Rows in the order of the schedules; stopping leaves the rest undone.
std::vector<StateRow> stateSurvey(const StateQuestion& question, const std::vector<std::string>& schedules,
                                  const Progress& progress = {});
std::vector<std::string> stateSchedules(); // the library's with its variants, without those that search
std::string zeroTitle(std::size_t level);  // "ZeRO 1: optimizer"
SurveyTable stateTable(const std::vector<StateRow>& rows, const StateQuestion& question); // of cells that are done
// The four stages of one schedule as stacked bars against the memory of a rank.
Plot stateBars(const StateRow& row, const StateQuestion& question);
// Time and memory of every schedule; cells over the memory are hatched. The ids of its items are row · 4 + stage.
Plot stateGrid(const std::vector<StateRow>& rows, const StateQuestion& question);
Plot stateWhole(Plot bars, Plot grid); // both in one, the grid below
// Why a ZeRO stage holds more than the one before it, which shares less; "": none does.
std::string whyMoreIsHeld(const StateRow& row, const StateQuestion& question);
std::string stateText(const StateRow& row, std::size_t level, const StateQuestion& question); // a cell in sentences
// Memory categories from the axis of a chart up: state first, then what a step needs besides.
inline constexpr std::array stackedCategories{
    MemoryCategory::Optimizer, MemoryCategory::Gradients,   MemoryCategory::Weights,   MemoryCategory::Gathered,
    MemoryCategory::Buckets,   MemoryCategory::Activations, MemoryCategory::Workspace, MemoryCategory::Communication};

// Fields that surveys of a model share: its name, a device, the replicas.
SurveyField modelField();
SurveyField deviceField();
SurveyField replicasField();

} // namespace stagewright
