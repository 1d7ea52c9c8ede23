// MixedSurvey: how ranks of different speed and memory divide a batch and a model's state (Cephalo, arXiv 2411.01075).
// Every rank has all layers and a part of their weights, gradients and optimizer state (ZeRO 3), and accumulates
// gradients layer by layer. Three divisions, each simulated with a model's sizes: even, by speed, and both apart. Pure;
// any thread.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "schedules/base/units.h"
#include "schedules/survey/survey.h"

namespace stagewright {

struct MixedQuestion {
    std::string model = "gpt-6.2b";
    std::string device = "a100";
    std::vector<double> speeds{3, 2, 1}; // by rank, > 0; 1: the device's
    std::vector<Bytes> memory;           // by rank, or one for all; empty: the device's
    int batch = 24;                      // samples of a step; a microbatch has one
    bool recompute = true;               // activations, layer by layer
    double bytesPerSecond = 0;           // of a rank's link; 0: the device's
    bool operator==(const MixedQuestion&) const = default;

    // Usage: a list that can't be read, or more ranks than samples.
    static Result<MixedQuestion> of(const SurveyQuestion& question);
    std::string setup() const; // in a sentence
    Bytes memoryOf(std::size_t rank) const;
    double speedShare(std::size_t rank) const; // of all ranks' speeds
};
inline constexpr int mostMixedRanks = 16;

// "3,2,1", each above 0, of 2 to mostMixedRanks ranks; "40,48,64" in GB, one for each rank or one for all, "" the
// device's. Usage errors name the item.
Result<std::vector<double>> parseMixedSpeeds(std::string_view text);
Result<std::vector<Bytes>> parseMixedMemory(std::string_view text, std::size_t ranks);

enum class MixedRule : std::uint8_t {
    Even,
    BySpeed,   // batch and state
    Decoupled, // the batch by speed where memory allows it, the state by the memory that is left
};
inline constexpr std::size_t mixedRuleCount = 3;
std::string titleOf(MixedRule rule);

struct MixedRank {
    int samples = 0;
    double share = 0;  // of the state
    double limit = 0;  // of the state: what would fit beside the rest of its peak; below 0: not even that
    Nanos compute = 0; // of a step
    Bytes peak = 0;
    Bytes memory = 0;
    bool over() const { return peak > memory; }
};

struct MixedDivision {
    std::string error; // why there is none
    Nanos step = 0;
    std::vector<MixedRank> ranks;
    bool good() const { return error.empty() && !ranks.empty(); }
    bool fits() const;
};

struct MixedAnswer {
    std::string error;
    std::array<MixedDivision, mixedRuleCount> divisions; // by MixedRule
};

// Each part of `total` by weight, largest remainders first, each at least `least`. Precondition: total ≥ least ·
// weights.
std::vector<int> dividedBy(const std::vector<double>& weights, int total, int least);

// Even parts of `whole`, and what is above a limit levelled over the others: min(limit, level), summing to `whole`.
// Empty: the limits sum to less.
std::vector<std::int64_t> levelled(const std::vector<std::int64_t>& limits, std::int64_t whole);

// Decoupled: the least time of the slowest rank for which every rank's activations fit and the memory left holds the
// state; samples above that time are taken from whoever computes longest. The state is levelled() into what is left and
// checked by simulating it. Gathers are not part of the choice of samples, but of the simulated step. O(batch² ·
// layers), and a few simulations.
MixedAnswer mixedSurvey(const MixedQuestion& question, const Progress& progress = {});
SurveyTable unevenTable(const MixedAnswer& answer, const MixedQuestion& question); // rank by rank of each division
// Two bars for each rank, its share of the batch and of the state, with their limits, division by division. The ids of its
// items count the ranks of the divisions in turn.
Plot unevenPlot(const MixedAnswer& answer, const MixedQuestion& question);

} // namespace stagewright
