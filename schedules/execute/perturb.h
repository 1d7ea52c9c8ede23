// Perturbation: an intended disturbance of a simulation or a real run, so that every cause of idle time can be provoked
// and found again. Text form, parts separated by ',' or '|':
//
//     rank=2:1.25     every compute op of rank 2 takes 1.25 times as long
//     link=1-2:1.0    messages between ranks 1 and 2, either way, have a latency of 1.0 unit
//     launch=3:0.2    every compute op of rank 3 starts 0.2 units after it could
//     jitter=0.05     every compute op takes exp(N(−σ²/2, σ)) times as long, mean 1, σ = 0.05: drawn from a seed
//     transient=2@3:4 every compute op of rank 2 takes 4 times as long in step 3; steps are counted from 1, warm-up
//     included secret=7        one of the first three, drawn from the seed 7: for an exercise, in which only this text
//     is stored and shown
//
// The unit is the forward time of one microbatch over a rank's chunks (as of --comm).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/base/units.h"
#include "schedules/execute/simulate.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"

namespace stagewright {

struct Perturbation {
    std::vector<std::pair<int, double>> ranks; // (rank, factor > 0)
    struct SlowLink {
        int from = 0;
        int to = 0;
        double units = 0;
        bool operator==(const SlowLink&) const = default;
    };
    std::vector<SlowLink> links;
    std::vector<std::pair<int, double>> launches; // (rank, units)
    double jitter = 0;                            // σ
    struct Transient {
        int rank = 0;
        int step = 1;      // from 1
        double factor = 1; // > 0
        bool operator==(const Transient&) const = default;
    };
    std::vector<Transient> transients;
    std::optional<int> secret; // its seed, from 0

    bool empty() const
    {
        return ranks.empty() && links.empty() && launches.empty() && jitter == 0 && transients.empty() && !secret;
    }
    bool operator==(const Perturbation&) const = default;
};

// parse(toText(x)) == x. Errors (Usage) name the part; a rank outside 0 … ranks − 1 is one.
Result<Perturbation> parsePerturbation(std::string_view text, int ranks);
std::string toText(const Perturbation& perturbation);
std::string toText(const Perturbation::Transient& transient);
// With the secret as what it stands for on so many ranks; without one as it is. perturbed() and runPerturbation() do so
// themselves.
Perturbation revealed(const Perturbation& perturbation, int ranks);
// A simulation has one step: transients of another are refused (Usage).
Result<void> checkOneStep(const Perturbation& perturbation);

// What a real run reads: factors and delays by rank (empty: none), links are set in Links.
struct RunPerturbation {
    std::vector<double> slowFactor; // by rank, 1: as it is
    std::vector<Nanos> launch;      // by rank
    std::vector<Perturbation::Transient> transients;
    double jitter = 0;
    std::uint64_t seed = 0;
    bool changesDurations() const { return !slowFactor.empty() || !transients.empty() || jitter > 0; }
    double factorOf(int rank, int step, const Op& op) const; // of a compute op; step from 0
    Nanos launchOf(int rank) const { return launch.empty() ? 0 : launch[static_cast<std::size_t>(rank)]; }
};
RunPerturbation runPerturbation(const Perturbation& perturbation, int ranks, Nanos unit, std::uint64_t seed);
void setLatency(const Perturbation& perturbation, Nanos unit, Links& links);

// The cost model of the disturbed machine in its first step: durations of slow ranks, links, CostModel::launch and
// jitter. Rounded once.
CostModel perturbed(const Schedule& schedule, const CostModel& costs, const Perturbation& perturbation, Nanos unit,
                    std::uint64_t seed = 1);

// Stage costs in proportion to layers (one number per stage, sum > 0): duration and activation of stage s are
// multiplied by layers[s] × stages / sum. Usage error where there is not one number per stage, one is negative, or all
// are 0.
Result<CostModel> withStageLayers(const Schedule& schedule, const CostModel& costs, std::span<const int> layers);

// Launch delays around place(): add them to the durations of compute ops before (once for a pair), and take them out of
// the spans after: an op then starts its rank's delay after its inputs and its rank were ready. launch: by rank.
void addLaunch(const Schedule& schedule, std::span<const Nanos> launch, std::vector<Nanos>& durations);
void takeLaunch(const Schedule& schedule, std::span<const Nanos> launch, SimResult& result);

} // namespace stagewright
