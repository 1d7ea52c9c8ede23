#include "schedules/model/mesh.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

constexpr int mostReplicas = 4096;
constexpr std::size_t mostRanks = 65535; // of a timeline
constexpr std::size_t mostOps = 50'000'000;
constexpr int mostSamples = 1'000'000;

void renumber(Op& op, int by)
{
    if (hasMicrobatch(op)) op.microbatch += by;
}

std::string difference(const Schedule& first, const Schedule& other)
{
    if (other.replicas != 1) return fmt::format("it is over {} replicas itself", other.replicas);
    if (other.ranks != first.ranks) return fmt::format("it has {} ranks, the first {}", other.ranks, first.ranks);
    if (other.stages != first.stages) return fmt::format("it has {} stages, the first {}", other.stages, first.stages);
    if (other.weights != first.weights)
        return fmt::format("its weights are {}, the first's {}", toText(other.weights), toText(first.weights));
    if (other.sliceLengths != first.sliceLengths) return "its sequence slices have other lengths";
    for (int s = 0; s < first.stages; ++s)
        if (holdersOf(other.placement, s) != holdersOf(first.placement, s))
            return fmt::format("stage {} is on other ranks", s);
    return {};
}

} // namespace

bool Mesh::alike() const
{
    return std::all_of(batches.begin(), batches.end(),
                       [this](const ReplicaBatch& batch) { return batch == batches.front(); });
}

Result<std::vector<ReplicaBatch>> parseReplicaBatches(std::string_view text, int replicas)
{
    std::vector<ReplicaBatch> out;
    for (const std::string_view item : split(text, ",")) {
        const auto [microbatches, samples] = keyValueOf(item, 'x');
        ReplicaBatch batch;
        const auto count = wholeOf<int>(microbatches);
        const auto size = samples ? wholeOf<int>(*samples) : std::optional<int>(0);
        if (!count || *count < 1 || !size || (samples && *size < 1) || *size > mostSamples)
            return fail(ErrorCode::Usage, fmt::format("'{}' is not a replica's share of the batch", item),
                        "give the microbatches of each replica (3,5), or microbatches x samples (3x2,5x1)");
        batch.microbatches = *count;
        batch.samples = *size;
        out.push_back(batch);
    }
    if (out.size() != static_cast<std::size_t>(replicas))
        return fail(ErrorCode::Usage, fmt::format("{} shares of the batch for {} replicas", out.size(), replicas),
                    "give one for each replica");
    return out;
}

std::string toText(const std::vector<ReplicaBatch>& batches)
{
    std::string out;
    for (const ReplicaBatch& batch : batches) {
        out += fmt::format("{}{}", out.empty() ? "" : ",", batch.microbatches);
        if (batch.samples > 0) out += fmt::format("x{}", batch.samples);
    }
    return out;
}

Result<Schedule> overReplicas(std::span<const Schedule> replicas)
{
    if (replicas.empty()) return fail(ErrorCode::Usage, "no replica is given", "give at least one");
    if (replicas.size() > mostReplicas)
        return fail(ErrorCode::Usage,
                    fmt::format("{} replicas; at most {} are possible", replicas.size(), mostReplicas));
    const Schedule& first = replicas.front();
    Schedule out;
    out.name = first.name;
    out.stages = first.stages;
    out.weights = first.weights;
    out.sliceLengths = first.sliceLengths;
    out.replicas = static_cast<int>(replicas.size());
    std::vector<std::vector<Placement::Copy>> copies(static_cast<std::size_t>(std::max(0, first.stages)));
    for (std::size_t i = 0; i < replicas.size(); ++i) {
        const Schedule& one = replicas[i];
        if (std::string what = difference(first, one); !what.empty())
            return fail(ErrorCode::Usage, fmt::format("replica {}: {}", i, what),
                        "replicas may differ in microbatches and orders only");
        for (int s = 0; s < one.stages; ++s)
            for (const Placement::Copy& copy : one.placement.copiesOf(s))
                copies[static_cast<std::size_t>(s)].push_back(
                    {copy.firstMicrobatch + out.microbatches, copy.rank + out.ranks});
        for (std::size_t r = 0; r < one.order.size(); ++r) {
            out.order.push_back(one.order[r]);
            if (i > 0)
                for (Op& op : out.order.back()) renumber(op, out.microbatches);
            out.paired.push_back(r < one.paired.size() ? one.paired[r] : std::vector<std::uint32_t>());
        }
        out.ranks += one.ranks;
        out.microbatches += one.microbatches;
    }
    out.placement = Placement::of(std::move(copies));
    return out;
}

Result<Schedule> overReplicas(const Schedule& schedule, int replicas)
{
    if (replicas < 1 || replicas > mostReplicas)
        return fail(ErrorCode::Usage, fmt::format("{} replicas; 1 to {} are possible", replicas, mostReplicas));
    const auto copies = static_cast<std::size_t>(replicas);
    if (schedule.order.size() * copies > mostRanks || schedule.opCount() * copies > mostOps)
        return fail(ErrorCode::Usage,
                    fmt::format("{} replicas of {} ranks and {} ops; at most {} ranks and {} ops are possible",
                                replicas, schedule.ranks, schedule.opCount(), mostRanks, mostOps));
    return overReplicas(std::vector<Schedule>(static_cast<std::size_t>(replicas), schedule));
}

Schedule replicaSchedule(const Schedule& schedule, int replica)
{
    if (schedule.replicas <= 1) return schedule;
    const int ranks = schedule.pipelineRanks();
    const int firstRank = replica * ranks;
    Schedule out;
    out.name = schedule.name;
    out.stages = schedule.stages;
    out.weights = schedule.weights;
    out.sliceLengths = schedule.sliceLengths;
    out.ranks = ranks;
    int from = schedule.microbatches; // of the job's microbatches this replica has [from, until)
    int until = schedule.microbatches;
    for (int s = 0; s < schedule.stages; ++s)
        for (const Placement::Copy& copy : schedule.placement.copiesOf(s)) {
            if (schedule.replicaOf(copy.rank) == replica) from = std::min(from, copy.firstMicrobatch);
            if (schedule.replicaOf(copy.rank) > replica) until = std::min(until, copy.firstMicrobatch);
        }
    out.microbatches = until - from;
    std::vector<std::vector<Placement::Copy>> copies(static_cast<std::size_t>(schedule.stages));
    for (int s = 0; s < schedule.stages; ++s)
        for (const Placement::Copy& copy : schedule.placement.copiesOf(s))
            if (schedule.replicaOf(copy.rank) == replica)
                copies[static_cast<std::size_t>(s)].push_back({copy.firstMicrobatch - from, copy.rank - firstRank});
    out.placement = Placement::of(std::move(copies));
    for (int r = firstRank; r < firstRank + ranks; ++r) {
        const auto rank = static_cast<std::size_t>(r);
        out.order.push_back(schedule.order[rank]);
        for (Op& op : out.order.back()) renumber(op, -from);
        out.paired.push_back(rank < schedule.paired.size() ? schedule.paired[rank] : std::vector<std::uint32_t>());
    }
    return out;
}

bool replicasAlike(const Schedule& schedule)
{
    const Schedule first = replicaSchedule(schedule, 0);
    for (int replica = 1; replica < schedule.replicas; ++replica)
        if (replicaSchedule(schedule, replica) != first) return false;
    return true;
}

std::vector<int> holdersOf(const Placement& placement, int stage)
{
    std::vector<int> out;
    for (const Placement::Copy& copy : placement.copiesOf(stage)) out.push_back(copy.rank);
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

} // namespace stagewright
