// --replicas, --shard, --gather, --reduce, --collectives, --replica-batch, --speed, --cut: several pipelines that train
// one model, what they share of its state, and where the ops for that go.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/execute/perturb.h"
#include "schedules/model/collective_costs.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"
#include "schedules/model/shard_rules.h"
#include "traces/run/run.h"

namespace stagewright {

class OptionSet;
class Session;

struct ReplicaOptions {
    int replicas = 1;
    std::string shard = "none";
    std::string gather;      // "": batch
    std::string reduce;      // "": late
    std::string collectives; // "": ring
    std::string batch;       // microbatches of each replica; "": alike
    std::string speed;       // of each replica, or of each rank; "": alike
    std::string cut;         // partial backward: the layer that each replica goes back to
    // The model's layers on each of so many stages, which cuts are counted in; null: a stage is one.
    std::function<Result<std::vector<int>>(int stages)> layersOf;
    int samplesOfCosts = 0; // of a microbatch that simulated costs are of; 0: not known
    bool any() const
    {
        return replicas > 1 || shard != "none" || !gather.empty() || !reduce.empty() || !collectives.empty() ||
               !batch.empty() || !speed.empty() || !cut.empty();
    }
};
void addReplicaOptions(OptionSet& verb, ReplicaOptions& options);

// The lists with the ops of the shared state. Replicas that are alike are computed once: the schedule is then one of
// them, and standsFor says of how many; else it is over all of them.
struct ReplicaChoice {
    Schedule schedule;
    int standsFor = 1;
    StateSharding sharding;
    ShardRules rules;
    CollectiveCosts collectives;
    CollectiveLane lane = CollectiveLane::Beside;
    std::string way = "ring";   // both, as given
    std::vector<double> speeds; // by rank of the schedule; empty: all 1
    std::vector<double> sizes;  // by replica: samples of a microbatch ÷ those of the costs; empty: 1
    std::vector<int> cuts;      // by replica; empty: all go back to layer 0
    std::vector<int> layers;    // by stage, where there are cuts
    bool shared = false;        // false: nothing was asked for, the schedule is as given
};
// ofMicrobatches: the same schedule for another number of microbatches.
Result<ReplicaChoice> chooseReplicas(const Schedule& schedule, const ReplicaOptions& options,
                                     const std::function<Result<Schedule>(int microbatches)>& ofMicrobatches);

// Gathers and reductions that move nothing and take no time; and what to say of them.
bool collectivesAreFree(const CostModel& costs);
inline constexpr const char* freeCollectives =
    "these costs have no weights: gathers and reductions move nothing and take no time; give --costs "
    "analytic:MODEL@GPU, UNSHARD=2,REDUCE_GRAD=1 in units, or a cost file with weights";

// For what is trained: every replica's lists, or --replica-batch's, with the ops of shared state. Without --shard,
// --gather and --reduce they have reductions at their ends, unless weights are stale or the lists have optimizer steps
// of their own; what can't be trained yet is refused by name.
struct ReplicaSharing {
    StateSharding sharding;
    ShardRules rules;
    std::vector<double> speeds; // by rank; empty: all alike
    std::vector<int> samples;   // of a microbatch, by replica; empty: --microbatch-size in all
    std::vector<int> cuts;      // by replica; empty: all go back to layer 0
    bool shared = false;        // whether the lists have ops of shared state
};
struct TrainedReplicas {
    Schedule schedule;
    ReplicaSharing sharing;
};
Result<TrainedReplicas> trainedReplicas(const Schedule& schedule, const ReplicaOptions& options, int microbatchSize,
                                        const std::function<Result<Schedule>(int microbatches)>& ofMicrobatches);
// Declared speeds as slow ranks: the fastest runs as it is, others take longer.
void addSpeeds(Perturbation& perturbation, const std::vector<double>& speeds);

// Keys replicas, shard, gather, reduce, bucket_bytes, collectives, speed, cut; nothing where nothing is shared.
void addReplicaFacts(TextPairs& configuration, const ReplicaChoice& choice);
// Those of them that a training does not give itself: replicas, gather, reduce.
void addReplicaFacts(TextPairs& configuration, const TrainedReplicas& trained);

// Sharding, lane, speeds and the times of collectives, over costs.links.all within a host.
void shareCosts(CostModel& costs, const ReplicaChoice& choice);

} // namespace stagewright
