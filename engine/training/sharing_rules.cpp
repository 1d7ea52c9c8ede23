#include "engine/training/sharing_rules.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/model/mesh.h"
#include "schedules/model/partial_backward.h"

namespace stagewright {

namespace {

// What one rank's list does with one stage.
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
        out.stepped = out.stepped || isOptimizer(op.kind);
        out.gathers = out.gathers || isGather(op.kind);
        out.behindStep = out.behindStep || (isGather(op.kind) && out.stepped);
        if (!isReduction(op.kind)) continue;
        ++out.reductions;
        out.ofMicrobatch = out.ofMicrobatch || hasMicrobatch(op);
    }
    return out;
}

} // namespace

Result<void> checkCuts(const Schedule& schedule, const ExecutionPlan& plan, const TrainingOptions& options,
                       std::span<const StageSlice> slices)
{
    const std::vector<int> first = firstStagesBack(schedule);
    if (options.cuts.empty()) {
        const auto partly = std::find_if(first.begin(), first.end(), [](int stage) { return stage > 0; });
        if (partly == first.end()) return {};
        return fail(
            ErrorCode::Usage,
            fmt::format("replica {} goes back to stage {} only, but no cut says so", partly - first.begin(), *partly),
            "give the layer that each replica goes back to");
    }
    if (options.cuts.size() != static_cast<std::size_t>(schedule.replicas))
        return fail(ErrorCode::Usage, fmt::format("{} cuts for {} replicas", options.cuts.size(), schedule.replicas),
                    "give one for each replica");
    if (!plan.shared)
        return fail(
            ErrorCode::Usage,
            fmt::format(
                "the lists of {} do not say when replicas that go back to different layers reduce their gradients",
                schedule.name),
            "give lists with REDUCE_GRAD and OPT");
    if (options.sharding.shards(ShardLevel::Gradients))
        return fail(ErrorCode::Usage,
                    "replicas that go back to different layers can't shard gradients: each stage's are handed to their "
                    "owners as a whole",
                    "shard nothing, or the optimizer state");
    if (plan.slices)
        return fail(ErrorCode::Usage,
                    "sequence slices below a cut would keep their keys and values, which are freed on the way back",
                    "take a schedule without slices");
    std::vector<int> blocks;
    for (const StageSlice& slice : slices) blocks.push_back(slice.layerCount);
    for (std::size_t replica = 0; replica < options.cuts.size(); ++replica) {
        const int cut = options.cuts[replica];
        if (cut < 0 || cut > options.workload->layers())
            return fail(ErrorCode::Usage,
                        fmt::format("replica {} can't go back to layer {}; the model has layers 0 to {}", replica, cut,
                                    options.workload->layers() - 1));
        const int stage = firstStageOf(cut, blocks);
        if (first[replica] == stage) continue;
        return fail(
            ErrorCode::Usage,
            fmt::format("replica {} is to go back to layer {}, which is in stage {}, but its lists go back to stage {}",
                        replica, cut, stage, first[replica]),
            "give lists that end their backwards there");
    }
    return {};
}

Result<void> checkSharing(const Schedule& schedule, const ExecutionPlan& plan, const TrainingOptions& options)
{
    const StateSharding& sharding = options.sharding;
    if (!plan.shared) {
        if (sharding.level == ShardLevel::None) return {};
        return fail(ErrorCode::Usage,
                    fmt::format("{} are to be sharded, but the lists of {} do not say when", toText(sharding.level),
                                schedule.name),
                    "give replicas, and lists with UNSHARD, REDUCE_GRAD and OPT");
    }
    for (int stage = 0; stage < schedule.stages; ++stage)
        if (Result<void> fits = checkMembers(sharding, static_cast<int>(holdersOf(schedule.placement, stage).size()));
            !fits)
            return fits;
    for (int rank = 0; rank < schedule.ranks; ++rank) {
        const RankPlan& ranked = plan.ranks[static_cast<std::size_t>(rank)];
        for (const int stage : ranked.stages) {
            const Uses uses = usesOf(ranked, stage);
            const auto refused = [&](const std::string& what, const std::string& remedy) {
                return fail(ErrorCode::Usage, fmt::format("rank {}, stage {}: {}", rank, stage, what), remedy);
            };
            const std::string gather = toText(makeGather(stage));
            if (sharding.level == ShardLevel::Weights && uses.needs && !uses.gathers)
                return refused("its weights are sharded, but the list never gathers them",
                               fmt::format("add {} before its first forward", gather));
            if ((sharding.level == ShardLevel::Optimizer || sharding.level == ShardLevel::Gradients) &&
                !uses.behindStep)
                return refused("each rank steps its part only, but the list never gathers the stepped weights",
                               fmt::format("add {} behind its optimizer op", gather));
            if (!sharding.shards(ShardLevel::Gradients) && (uses.ofMicrobatch || uses.reductions > 1))
                return refused(fmt::format("{} of gradients that stay whole",
                                           uses.reductions == 1 ? "a reduction by microbatch"
                                                                : fmt::format("{} reductions", uses.reductions)),
                               "reduce once a batch, or give --shard gradients or weights");
        }
    }
    return {};
}

Result<void> checkFactors(const Schedule& schedule, const ExecutionPlan& plan, const TrainingOptions& options,
                          const Capabilities& device)
{
    if (options.optimizer.kind != OptimizerKind::Kfac) return {};
    const auto refused = [](std::string what, std::string remedy) {
        return fail(ErrorCode::Usage, "K-FAC: " + what, std::move(remedy));
    };
    if (!device.dense)
        return refused("it needs LAPACK, which OpenBLAS has, and fp32 on the processor",
                       "use --backend cpu without --precision bf16; apt-get install libopenblas0-pthread");
    if (schedule.weights != WeightRule::Synchronous)
        return refused(fmt::format("the weights of {} are {}", schedule.name, toText(schedule.weights)),
                       "take a synchronous schedule, or --optimizer adamw");
    if (options.resume)
        return refused("a checkpoint does not have its factors", "train without --resume, or with --optimizer adamw");
    if (!plan.shared) {
        if (plan.steps)
            return refused("optimizer ops in the lists step before the norm is known, and its steps can't be undone",
                           "take the OPT ops out, or --optimizer sgd");
        if (schedule.placement.hasCopies())
            return refused("copies of a stage would each have factors of their own samples, and part",
                           "share it with --shard optimizer:by=layer, or take a schedule without copies");
        return {};
    }
    if (options.sharding.level == ShardLevel::None || options.sharding.by != ShardBy::Layer)
        return refused("a layer needs one owner among the replicas, who has its factors",
                       "give --shard optimizer:by=layer");
    const bool arrives =
        std::any_of(plan.ranks.begin(), plan.ranks.end(), [](const RankPlan& ranked) { return ranked.stepsOnArrival; });
    if (arrives || options.sharding.bucket > 0)
        return refused("its steps can't be undone, nor be of a part of a layer",
                       "leave :stepped and :bucket out of --reduce");
    return {};
}

} // namespace stagewright
