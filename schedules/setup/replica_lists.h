// Replicas of a setup: several pipelines that train one model, what they share of its state, and where the ops for that
// go.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/execute/perturb.h"
#include "schedules/model/collective_costs.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"
#include "schedules/model/shard_rules.h"
#include "schedules/setup/setup.h"

namespace stagewright {

struct ReplicaLists {
    // With the ops of the shared state. Simulated replicas that are alike are computed once: the schedule is then one
    // of them, and standsFor says of how many; else it is over all of them.
    Schedule schedule;
    int standsFor = 1;
    StateSharding sharding;
    ShardRules rules;
    CollectiveCosts collectives;
    ResourceUse lane = ResourceUse::Beside;
    std::string way = "ring";   // both, as given
    std::vector<double> speeds; // by rank of the schedule; empty: all 1
    std::vector<double> sizes;  // simulated, by replica: samples of a microbatch ÷ those of the costs; empty: 1
    std::vector<int> samples;   // trained, of a microbatch, by replica; empty: --microbatch-size in all
    std::vector<int> cuts;      // by replica; empty: all go back to layer 0
    std::vector<int> layers;    // by stage, where there are cuts
    bool shared = false;        // whether the lists have ops of shared state
};

enum class SharedBy {
    Simulation, // only what the setup names; costs count samples
    // Every replica's lists. Without --shard, --gather and --reduce they have reductions at their ends, unless weights
    // are stale or the lists have optimizer steps of their own; what can't be trained yet is refused by name.
    Training,
};
struct SharedHow {
    SharedBy by = SharedBy::Simulation;
    int samplesOfCosts = 0; // of a microbatch that simulated costs are of; 0: not known
    // The model's layers on each of so many stages, which cuts are counted in; null: a stage is one.
    std::function<Result<std::vector<int>>(int stages)> layersOf = {};
    // The same schedule for another number of microbatches.
    std::function<Result<Schedule>(int microbatches)> ofMicrobatches = {};
};
// Usage, naming the option.
Result<ReplicaLists> shareState(const Schedule& schedule, const Setup& setup, const SharedHow& how);
// What of that can be said without the lists, for a pipeline of so many ranks, stages and layers: the same errors.
Result<void> checkReplicas(const Schedule& schedule, const Setup& setup, SharedBy by, int layers);

// Sharding, lane, speeds and the times of collectives, over costs.links.all within a host.
void shareCosts(CostModel& costs, const ReplicaLists& state);
// Gathers and reductions that move nothing and take no time; and what to say of them.
bool collectivesAreFree(const CostModel& costs);
inline constexpr const char* freeCollectives =
    "these costs have no weights: gathers and reductions move nothing and take no time; give --costs "
    "analytic:MODEL@GPU, UNSHARD=2,REDUCE_GRAD=1 in units, or a cost file with weights";
// Declared speeds as slow ranks: the fastest runs as it is, others take longer.
void addSpeeds(Perturbation& perturbation, const std::vector<double>& speeds);

// For a run's configuration. Keys replicas, shard, gather, reduce, bucket_bytes, collectives, speed, cut, stage_layers;
// nothing where nothing is shared. Of a training only those that it does not give itself: replicas, gather, reduce.
std::vector<std::pair<std::string, std::string>> factsOf(const ReplicaLists& state, SharedBy by);

} // namespace stagewright
