#include "schedules/model/collective_costs.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "schedules/model/kinds.h"
#include "schedules/model/mesh.h"
#include "schedules/model/partial_backward.h"

namespace stagewright {

namespace {

constexpr std::array<std::string_view, 3> algorithmNames{"ring", "tree", "two-level"};

Nanos stepsOf(const Link& link, std::int64_t steps, Bytes each)
{
    const double rate = link.bytesPerSecond > 0 ? static_cast<double>(each) * 1e9 / link.bytesPerSecond : 0;
    return steps * link.latency + std::llround(static_cast<double>(steps) * rate);
}

Link slower(const Link& a, const Link& b)
{
    Link out;
    out.latency = std::max(a.latency, b.latency);
    out.bytesPerSecond = a.bytesPerSecond <= 0   ? b.bytesPerSecond
                         : b.bytesPerSecond <= 0 ? a.bytesPerSecond
                                                 : std::min(a.bytesPerSecond, b.bytesPerSecond);
    return out;
}

Bytes partOf(Bytes bytes, std::int64_t parts) { return (bytes + parts - 1) / parts; }

std::int64_t log2Up(int members)
{
    std::int64_t steps = 0;
    while ((1 << steps) < members) ++steps;
    return steps;
}

// A stage's members, and which of them each of its ranks in the schedule is.
struct Members {
    int count = 1;
    std::vector<int> holders;    // ranks of the schedule
    bool representative = false; // one replica for all: members beyond its holders are alike
};

Members membersOf(const Schedule& schedule, const CostModel& costs, int stage)
{
    Members out;
    out.holders = holdersOf(schedule.placement, stage);
    out.representative = schedule.replicas == 1 && costs.replicas > 1;
    out.count = static_cast<int>(out.holders.size()) * (schedule.replicas == 1 ? std::max(1, costs.replicas) : 1);
    return out;
}

FlatState flatOf(const StateSharding& sharding, const LayerElements& layers, int stage, Bytes bytes, int members)
{
    const auto s = static_cast<std::size_t>(stage);
    if (s < layers.size() && !layers[s].empty()) return flatStateOf(sharding, layers[s], members);
    const std::int64_t whole = std::max<Bytes>(bytes, 1);
    return flatStateOf(sharding, std::span(&whole, 1), members);
}

Bytes bytesOwned(const FlatState& flat, std::int64_t elements, Bytes bytes)
{
    if (flat.elements == 0) return 0;
    return std::llround(static_cast<double>(bytes) * static_cast<double>(std::min(elements, flat.elements)) /
                        static_cast<double>(flat.elements));
}

} // namespace

std::string_view toText(CollectiveAlgorithm algorithm) { return algorithmNames[static_cast<std::size_t>(algorithm)]; }

Result<CollectiveAlgorithm> parseCollectiveAlgorithm(std::string_view text)
{
    const auto at = std::find(algorithmNames.begin(), algorithmNames.end(), text);
    if (at == algorithmNames.end())
        return fail(ErrorCode::Usage, fmt::format("'{}' is not a way to gather and reduce", text),
                    "use ring, tree or two-level");
    return static_cast<CollectiveAlgorithm>(at - algorithmNames.begin());
}

Nanos CollectiveCosts::gather(Bytes bytes, int members, Bytes largest) const
{
    if (members < 2) return 0;
    const int group = perHost > 0 ? std::min(perHost, members) : members;
    const int hosts = (members + group - 1) / group;
    const Link across = between.value_or(within);
    const Link link = hosts > 1 ? slower(within, across) : within;
    switch (algorithm) {
    case CollectiveAlgorithm::Tree: {
        const Nanos moved = stepsOf({0, link.bytesPerSecond}, 1, bytes - bytes / members);
        return log2Up(members) * link.latency + moved;
    }
    case CollectiveAlgorithm::TwoLevel:
        return stepsOf(across, hosts - 1, partOf(bytes, hosts)) + stepsOf(within, group - 1, partOf(bytes, group));
    case CollectiveAlgorithm::Ring: break;
    }
    return stepsOf(link, members - 1, largest > 0 ? largest : partOf(bytes, members));
}

Nanos CollectiveCosts::allReduce(Bytes bytes, int members) const { return 2 * gather(bytes, members); }

void setCollectiveTimes(CostModel& costs, const Schedule& schedule, const CollectiveCosts& collectives,
                        const LayerElements& layers)
{
    const StateSharding& sharding = costs.sharding;
    for (int stage = 0; stage < std::min(schedule.stages, costs.stages()); ++stage) {
        const StageMemory& memory = costs.memory[static_cast<std::size_t>(stage)];
        const Members members = membersOf(schedule, costs, stage);
        const FlatState flat = flatOf(sharding, layers, stage, memory.weight, members.count);
        const std::int64_t largest = flat.largestOwned(members.count);
        if (memory.weight > 0)
            costs.setDuration(
                OpKind::Unshard, stage,
                collectives.gather(memory.weight, members.count, bytesOwned(flat, largest, memory.weight)));
        Nanos reduction = 0;
        for (const ShardPiece& bucket : bucketsOf(memory.gradient, sharding.bucket)) {
            const Bytes piece = bytesOwned(flat, largest, bucket.size());
            const Nanos scatter = collectives.gather(bucket.size(), members.count, piece);
            reduction += sharding.level == ShardLevel::None ? 2 * scatter : scatter;
        }
        if (memory.gradient > 0) costs.setDuration(OpKind::ReduceGrad, stage, reduction);
        if (!sharding.shards(ShardLevel::Optimizer) || flat.elements == 0) continue;
        for (std::size_t i = 0; i < members.holders.size(); ++i) {
            const int rank = members.holders[i];
            const Nanos whole = costs.duration(OpKind::Optimizer, stage, rank);
            const std::int64_t owned = members.representative ? largest : flat.ownedBy(static_cast<int>(i));
            const Nanos part = bytesOwned(flat, owned, whole);
            if (part != whole) costs.setDuration(OpKind::Optimizer, stage, rank, part);
        }
    }
}

std::vector<CollectiveVolume> collectiveVolumes(const Schedule& schedule, const CostModel& costs,
                                                const LayerElements& layers)
{
    const StateSharding& sharding = costs.sharding;
    std::vector<CollectiveVolume> out(schedule.order.size());
    const std::vector<int> firstBack = firstStagesBack(schedule);
    for (int stage = 0; stage < std::min(schedule.stages, costs.stages()); ++stage) {
        const StageMemory& memory = costs.memory[static_cast<std::size_t>(stage)];
        const Members members = membersOf(schedule, costs, stage);
        const FlatState flat = flatOf(sharding, layers, stage, memory.weight, members.count);
        const auto contributes = [&](int rank) {
            return firstBack[static_cast<std::size_t>(schedule.replicaOf(rank))] <= stage;
        };
        const int contributing =
            members.count - static_cast<int>(std::count_if(members.holders.begin(), members.holders.end(),
                                                           [&](int rank) { return !contributes(rank); }));
        for (std::size_t i = 0; i < members.holders.size(); ++i) {
            const auto rank = static_cast<std::size_t>(members.holders[i]);
            const std::int64_t owned = flat.ownedBy(static_cast<int>(i));
            const Bytes others = memory.weight - bytesOwned(flat, owned, memory.weight);
            const Bytes own = bytesOwned(flat, owned, memory.gradient);
            CollectiveVolume& volume = out[rank];
            for (const Op& op : schedule.order[rank]) {
                if (op.stage != stage || members.count < 2) continue;
                if (op.kind == OpKind::Unshard) {
                    ++volume.gathers;
                    volume.gathered += others;
                } else if (op.kind == OpKind::ReduceGrad) {
                    ++volume.reductions;
                    volume.reduced += own * (contributing - (contributes(members.holders[i]) ? 1 : 0));
                    if (sharding.level == ShardLevel::None) volume.reduced += memory.gradient - own;
                }
            }
        }
    }
    return out;
}

HeldState heldState(const CostModel& costs, const Schedule& schedule, int stage, int rank, const LayerElements& layers)
{
    const StageMemory& memory = costs.memory[static_cast<std::size_t>(stage)];
    HeldState out{memory.weight, memory.gradient, memory.optimizer};
    const Members members = membersOf(schedule, costs, stage);
    const auto at = std::find(members.holders.begin(), members.holders.end(), rank);
    if (at == members.holders.end()) return {};
    const StateSharding& sharding = costs.sharding;
    if (sharding.level == ShardLevel::None || members.count < 2) return out;
    const FlatState flat = flatOf(sharding, layers, stage, memory.weight, members.count);
    const std::int64_t owned = flat.ownedBy(static_cast<int>(at - members.holders.begin()));
    out.optimizer = bytesOwned(flat, owned, memory.optimizer);
    if (sharding.shards(ShardLevel::Gradients)) out.gradients = bytesOwned(flat, owned, memory.gradient);
    if (sharding.shards(ShardLevel::Weights)) out.weights = bytesOwned(flat, owned, memory.weight);
    return out;
}

} // namespace stagewright
