// MixedSurvey: how ranks of different speed and memory divide a batch and a model's state (Cephalo, arXiv 2411.01075).
// Every rank has all layers and a part of their weights, gradients and optimizer state (ZeRO 3), and accumulates
// gradients layer by layer over its own microbatches. Three divisions: even, by speed, and both apart, which
// planUneven() (schedules/planner) finds from cost lines by rank. Lines of a model on devices are checked by simulating
// each division; lines that were given or recorded are all that is known, and each division is what they say. Pure; any
// thread.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "schedules/base/units.h"
#include "schedules/planner/uneven_devices.h"
#include "schedules/survey/survey.h"

namespace stagewright {

struct MixedSpeed {
    double speed = 1;   // > 0; 1: the device's
    std::string device; // "": the question's
    bool operator==(const MixedSpeed&) const = default;
};

struct MixedQuestion {
    std::string model = "gpt-6.2b";
    std::string device = "a100";
    std::vector<MixedSpeed> speeds{{3, {}}, {2, {}}, {1, {}}}; // by rank
    std::vector<Bytes> memory;                                 // by rank, or one for all; empty: the device's
    int batch = 24;                                            // samples of a step
    bool recompute = true;                                     // activations, layer by layer
    double bytesPerSecond = 0;                                 // of a rank's link; 0: the device's, the slowest of all
    Nanos launch = 100'000;                                    // of each pass of a layer, besides its samples
    // Lines that are given instead of all of the above, in ms and GB, and whose they are: "of a.json". None where they
    // are those of recorded runs, until withRecordedLines() (app/costs) has read them.
    std::string lines;
    std::optional<UnevenProblem> problem;
    bool operator==(const MixedQuestion&) const = default;

    // Usage: a list or lines that can't be read, or more ranks than samples. Reads the lines' file.
    static Result<MixedQuestion> of(const SurveyQuestion& question);
    std::string setup() const; // in a sentence
    std::size_t ranks() const { return problem ? problem->devices.size() : speeds.size(); }
    int samples() const { return problem ? problem->samples : batch; }
    Bytes memoryOf(std::size_t rank) const;
    std::string nameOf(std::size_t rank) const; // "speed 3", "V100 32 GB SXM2, speed 2"; "": nothing is known of it
};
inline constexpr int mostMixedRanks = 256;

// "3,2,1", "32x3,32x1" or "2xa100,v100": speeds above 0 and devices, of 2 to mostMixedRanks ranks; "40,48,64" or
// "32x80,32x24" in GB, one for each rank or one for all, "" the device's. Usage errors name the item.
Result<std::vector<MixedSpeed>> parseMixedSpeeds(std::string_view text);
Result<std::vector<Bytes>> parseMixedMemory(std::string_view text, std::size_t ranks);
// Whether such lines are those of recorded runs: FILE.stagewright#RUN, …
bool areRecordedLines(std::string_view lines);

enum class MixedRule : std::uint8_t {
    Even,
    BySpeed,   // batch and state
    Decoupled, // the least time for which the state fits into the memory that is left
};
inline constexpr std::size_t mixedRuleCount = 3;
std::string titleOf(MixedRule rule);

struct MixedRank {
    UnevenPlan::Pick pick;
    double share = 0;  // of the state
    double limit = 0;  // of the state: what would fit beside the rest of its peak; below 0: not even that
    Nanos compute = 0; // of a step
    Bytes peak = 0;
    Bytes memory = 0;
    bool over() const { return peak > memory; }
};

struct MixedDivision {
    std::string error; // why there is none
    Nanos step = 0;    // simulated, or of the slowest rank where lines were given
    std::vector<MixedRank> ranks;
    bool good() const { return error.empty() && !ranks.empty(); }
    bool fits() const;
};

struct MixedAnswer {
    std::string error;
    std::vector<double> speedShares;                     // by rank, of all ranks' speeds
    std::array<MixedDivision, mixedRuleCount> divisions; // by MixedRule
};

SurveyAnswer toSurveyAnswer(const MixedAnswer& answer, const MixedQuestion& question);
MixedAnswer mixedSurvey(const MixedQuestion& question, const Progress& progress = {});
SurveyTable unevenTable(const MixedAnswer& answer, const MixedQuestion& question); // rank by rank of each division
// Two bars for each rank, its share of the batch in its microbatches and of the state, with their limits, division by
// division; of more than 16 ranks, those in a row that are alike are one. The ids of its items count the ranks of the
// divisions in turn.
Plot unevenPlot(const MixedAnswer& answer, const MixedQuestion& question);

} // namespace stagewright
