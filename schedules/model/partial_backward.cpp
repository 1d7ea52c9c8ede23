#include "schedules/model/partial_backward.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "schedules/model/kinds.h"

namespace stagewright {

Result<std::vector<int>> parseCuts(std::string_view text, int replicas, int layers)
{
    std::vector<int> out;
    for (const std::string_view item : split(text, ",")) {
        const auto layer = wholeOf<int>(item);
        if (!layer || *layer < 0 || *layer > layers)
            return fail(ErrorCode::Usage,
                        fmt::format("'{}' is not a layer to go back to; there are layers 0 to {}", item, layers - 1),
                        fmt::format("give a layer of each replica, such as 0,{}; {} goes back through the head only",
                                    layers / 2, layers));
        out.push_back(*layer);
    }
    if (out.size() != static_cast<std::size_t>(replicas))
        return fail(ErrorCode::Usage, fmt::format("{} cuts for {} replicas", out.size(), replicas),
                    "give one for each replica");
    if (const int lowest = *std::min_element(out.begin(), out.end()); lowest > 0)
        return fail(ErrorCode::Usage,
                    fmt::format("no replica goes back to layer 0, so nobody would train the layers before {}", lowest),
                    "give one replica the cut 0");
    return out;
}

int firstStageOf(int cut, std::span<const int> blocks)
{
    int end = 0;
    for (std::size_t stage = 0; cut > 0 && stage + 1 < blocks.size(); ++stage) {
        end += blocks[stage];
        if (end > cut) return static_cast<int>(stage);
    }
    return cut > 0 && !blocks.empty() ? static_cast<int>(blocks.size()) - 1 : 0;
}

std::vector<int> firstStagesBack(const Schedule& schedule)
{
    const auto replicas = static_cast<std::size_t>(std::max(1, schedule.replicas));
    std::vector<int> all(replicas, 0);
    if (replicas == 1) return all;
    std::vector<int> out(replicas, schedule.stages);
    for (std::size_t rank = 0; rank < schedule.order.size(); ++rank) {
        const auto replica = static_cast<std::size_t>(schedule.replicaOf(static_cast<int>(rank)));
        if (replica >= replicas) return all;
        for (const Op& op : schedule.order[rank])
            if (isOfBackward(op.kind)) out[replica] = std::min(out[replica], static_cast<int>(op.stage));
    }
    const auto [lowest, highest] = std::minmax_element(out.begin(), out.end());
    return *lowest > 0 || *highest >= schedule.stages ? all : out;
}

bool goesBackPartly(const Schedule& schedule)
{
    const std::vector<int> first = firstStagesBack(schedule);
    return std::any_of(first.begin(), first.end(), [](int stage) { return stage > 0; });
}

int backwardShare(const Schedule& schedule, std::span<const int> firstStages, int rank, int stage)
{
    const int first = firstStages[static_cast<std::size_t>(schedule.replicaOf(rank))];
    return stage > first || first == 0 ? 0 : stage == first ? 1 : 2;
}

Result<Schedule> withoutBackwardBelow(const Schedule& schedule, std::span<const int> firstStages)
{
    if (schedule.weights != WeightRule::Synchronous)
        return fail(ErrorCode::Usage,
                    fmt::format("replicas of a schedule with {} weights can't go back to different layers",
                                toText(schedule.weights)),
                    "take a schedule with synchronous weights");
    Schedule out = schedule;
    out.paired.assign(schedule.order.size(), {});
    for (std::size_t rank = 0; rank < schedule.order.size(); ++rank) {
        const auto& ops = schedule.order[rank];
        const int first = firstStages[static_cast<std::size_t>(schedule.replicaOf(static_cast<int>(rank)))];
        const auto dropped = [first](const Op& op) {
            return op.stage < first && (isOfBackward(op.kind) || op.kind == OpKind::Recompute);
        };
        out.order[rank].clear();
        for (std::size_t i = 0; i < ops.size(); ++i) {
            if (ops[i].kind == OpKind::Optimizer || ops[i].kind == OpKind::ReduceGrad)
                return fail(ErrorCode::Usage,
                            fmt::format("the lists of {} have {} ops of their own", schedule.name, toText(ops[i])),
                            "take a schedule without optimizer ops and reductions");
            if (ops[i].slice >= 0)
                return fail(
                    ErrorCode::Usage,
                    fmt::format("the ops of {} are of sequence slices, whose keys and values are freed on the way back",
                                schedule.name),
                    "take a schedule without slices");
            if (dropped(ops[i])) continue;
            const bool pair =
                schedule.isPaired(static_cast<int>(rank), i) && i + 1 < ops.size() && !dropped(ops[i + 1]);
            if (pair) out.paired[rank].push_back(static_cast<std::uint32_t>(out.order[rank].size()));
            out.order[rank].push_back(ops[i]);
        }
    }
    return out;
}

std::vector<ContributedRange> contributedRanges(std::span<const std::int64_t> from,
                                                std::span<const std::int64_t> samples, std::int64_t elements)
{
    std::vector<std::int64_t> bounds{0, elements};
    for (const std::int64_t first : from) bounds.push_back(std::clamp<std::int64_t>(first, 0, elements));
    std::sort(bounds.begin(), bounds.end());
    bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
    std::vector<ContributedRange> out;
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
        ContributedRange range{bounds[i], bounds[i + 1], {}, 1};
        std::int64_t all = 0;
        std::int64_t contributed = 0;
        for (std::size_t copy = 0; copy < from.size(); ++copy) {
            range.contributes.push_back(from[copy] <= range.begin ? 1 : 0);
            all += samples[copy];
            if (range.contributes.back() != 0) contributed += samples[copy];
        }
        if (contributed > 0)
            range.scale = static_cast<float>(static_cast<double>(all) / static_cast<double>(contributed));
        out.push_back(std::move(range));
    }
    return out;
}

} // namespace stagewright
