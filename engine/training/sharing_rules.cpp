#include "engine/training/sharing_rules.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/model/mesh.h"

namespace stagewright {

namespace {

// Of one stage in one rank's list.
struct Uses {
    bool needs = false;   // weights
    bool gathers = false; // before them
    bool behindStep = false;
    bool stepped = false;
    int reductions = 0;
    bool ofMicrobatch = false;
};

Uses usesOf(const RankPlan& ranked, int stage)
{
    Uses out;
    for (const PlannedOp& planned : ranked.ops) {
        const Op& op = planned.op;
        if (op.stage != stage) continue;
        out.needs = out.needs || ruleOf(op.kind).needsWeights;
        out.stepped = out.stepped || op.kind == OpKind::Optimizer;
        out.gathers = out.gathers || op.kind == OpKind::Unshard;
        out.behindStep = out.behindStep || (op.kind == OpKind::Unshard && out.stepped);
        if (op.kind != OpKind::ReduceGrad) continue;
        ++out.reductions;
        out.ofMicrobatch = out.ofMicrobatch || hasMicrobatch(op);
    }
    return out;
}

} // namespace

Result<void> checkSharing(const Schedule& schedule, const ExecutionPlan& plan, const TrainingOptions& options)
{
    const StateSharding& sharding = options.sharding;
    if (!plan.shared) {
        if (sharding.level == ShardLevel::None) return {};
        return fail(ErrorCode::Usage, fmt::format("{} are to be sharded, but the lists of {} do not say when", toText(sharding.level), schedule.name),
                    "give replicas, and lists with UNSHARD, REDUCE_GRAD and OPT");
    }
    for (int stage = 0; stage < schedule.stages; ++stage)
        if (Result<void> fits = checkMembers(sharding, static_cast<int>(holdersOf(schedule.placement, stage).size())); !fits) return fits;
    for (int rank = 0; rank < schedule.ranks; ++rank) {
        const RankPlan& ranked = plan.ranks[static_cast<std::size_t>(rank)];
        for (const int stage : ranked.stages) {
            const Uses uses = usesOf(ranked, stage);
            const auto refused = [&](const std::string& what, const std::string& remedy) {
                return fail(ErrorCode::Usage, fmt::format("rank {}, stage {}: {}", rank, stage, what), remedy);
            };
            const std::string gather = toText(makeOp(OpKind::Unshard, stage));
            if (sharding.level == ShardLevel::Weights && uses.needs && !uses.gathers)
                return refused("its weights are sharded, but the list never gathers them", fmt::format("add {} before its first forward", gather));
            if ((sharding.level == ShardLevel::Optimizer || sharding.level == ShardLevel::Gradients) && !uses.behindStep)
                return refused("each rank steps its part only, but the list never gathers the stepped weights", fmt::format("add {} behind its optimizer op", gather));
            if (!sharding.shards(ShardLevel::Gradients) && (uses.ofMicrobatch || uses.reductions > 1))
                return refused(fmt::format("{} of gradients that stay whole", uses.reductions == 1 ? "a reduction by microbatch" : fmt::format("{} reductions", uses.reductions)), "reduce once a batch, or give --shard gradients or weights");
        }
    }
    return {};
}

} // namespace stagewright
