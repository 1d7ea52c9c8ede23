// Mesh: pipelines side by side that train one model, and one schedule over all of them. A stage is then on a rank of
// each replica: copies of it, by the same rule as the copies within one pipeline (Chimera), which sum their gradients
// in replica order, then copy order, which is the order of ranks.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/model/schedule.h"

namespace stagewright {

// A replica's share of the batch: so many microbatches of so many samples each.
struct ReplicaBatch {
    int microbatches = 1;
    int samples = 0; // of one microbatch; 0: as the model's
    bool operator==(const ReplicaBatch&) const = default;
};

struct Mesh {
    int pipelineRanks = 1;
    int replicas = 1;
    std::vector<ReplicaBatch> batches; // by replica; empty: all alike

    int ranks() const { return pipelineRanks * replicas; }
    bool alike() const;
    bool operator==(const Mesh&) const = default;
};

// "3,5" microbatches, "3x2,5x1" microbatches x samples. Usage: another number of items than replicas, numbers below 1.
Result<std::vector<ReplicaBatch>> parseReplicaBatches(std::string_view text, int replicas);
std::string toText(const std::vector<ReplicaBatch>& batches);

// One schedule over the replicas' own, in their order: ranks and microbatches numbered on. Fails (Usage) where their
// ranks, stages, placements' ranks, weights or slice lengths differ, or one has replicas itself; they may differ in
// microbatches and orders.
Result<Schedule> overReplicas(std::span<const Schedule> replicas);
Result<Schedule> overReplicas(const Schedule& schedule, int replicas); // all alike

// The inverse: one replica's own schedule, ranks and microbatches from 0. Precondition: 0 ≤ replica <
// schedule.replicas.
Schedule replicaSchedule(const Schedule& schedule, int replica);
bool replicasAlike(const Schedule& schedule); // every replica's own schedule equals the first's

// Ranks that hold a stage, ascending: replica order, then copy order. The first is the one whose sums are kept where
// one is enough.
std::vector<int> holdersOf(const Placement& placement, int stage);

} // namespace stagewright
