#include "schedules/messages/wait_graph.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/base/op_number.h"
#include "schedules/model/groups.h"

namespace stagewright {

Wait waitAt(const Schedule& schedule, const OpIndex& index, int rank, std::span<const std::size_t> heads)
{
    const auto r = static_cast<std::size_t>(rank);
    const auto& ops = schedule.order[r];
    Wait out{rank, static_cast<int>(heads[r]), {}, -1, 0, {}};
    if (heads[r] >= ops.size()) return out;
    for (std::size_t i = heads[r]; i < heads[r] + groupSize(schedule, rank, heads[r]) && out.onRank < 0; ++i)
        index.eachInput(ops[i], [&](std::uint32_t id, const Need&, int) {
            if (out.onRank >= 0 || id == noOp) return;
            const OpPlace place = index.placeOf(id);
            const auto from = static_cast<std::size_t>(place.rank);
            if (place.rank == rank || place.position < heads[from]) return;
            out = {rank,
                   static_cast<int>(i),
                   ops[i],
                   place.rank,
                   static_cast<int>(place.position),
                   schedule.order[from][place.position]};
        });
    return out;
}

std::vector<Wait> cycleAt(const Schedule& schedule, const OpIndex& index, std::span<const std::size_t> heads)
{
    std::vector<Wait> waits;
    for (int r = 0; r < schedule.ranks; ++r) waits.push_back(waitAt(schedule, index, r, heads));
    const auto first = std::find_if(waits.begin(), waits.end(), [](const Wait& wait) { return wait.onRank >= 0; });
    if (first == waits.end()) return {};
    std::vector<char> seen(waits.size(), 0);
    int rank = first->rank;
    while (rank >= 0 && seen[static_cast<std::size_t>(rank)] == 0) {
        seen[static_cast<std::size_t>(rank)] = 1;
        rank = waits[static_cast<std::size_t>(rank)].onRank;
    }
    if (rank < 0) return {};
    std::vector<Wait> cycle;
    do
        cycle.push_back(
            waits[static_cast<std::size_t>(std::exchange(rank, waits[static_cast<std::size_t>(rank)].onRank))]);
    while (rank != cycle.front().rank);
    std::rotate(
        cycle.begin(),
        std::min_element(cycle.begin(), cycle.end(), [](const Wait& a, const Wait& b) { return a.rank < b.rank; }),
        cycle.end());
    return cycle;
}

std::vector<Wait> shortestCycle(int ranks, const std::vector<Wait>& waits)
{
    std::vector<std::vector<const Wait*>> from(static_cast<std::size_t>(ranks));
    for (const Wait& wait : waits) from[static_cast<std::size_t>(wait.rank)].push_back(&wait);
    std::vector<Wait> best;
    std::vector<const Wait*> reachedBy; // breadth first from each rank
    for (int start = 0; start < ranks && best.size() != 2; ++start) {
        reachedBy.assign(static_cast<std::size_t>(ranks), nullptr);
        std::vector<int> queue{start};
        const Wait* closing = nullptr;
        for (std::size_t i = 0; i < queue.size() && !closing; ++i)
            for (const Wait* wait : from[static_cast<std::size_t>(queue[i])]) {
                if (wait->onRank == start) {
                    closing = wait;
                    break;
                }
                if (wait->onRank < start || reachedBy[static_cast<std::size_t>(wait->onRank)]) continue;
                reachedBy[static_cast<std::size_t>(wait->onRank)] = wait;
                queue.push_back(wait->onRank);
            }
        if (!closing) continue;
        std::vector<Wait> cycle{*closing};
        while (cycle.back().rank != start) cycle.push_back(*reachedBy[static_cast<std::size_t>(cycle.back().rank)]);
        std::reverse(cycle.begin(), cycle.end());
        if (best.empty() || cycle.size() < best.size()) best = std::move(cycle);
    }
    return best;
}

std::string describeCycle(const std::vector<Wait>& cycle)
{
    std::string out = fmt::format("deadlock of {} ranks: ", cycle.size());
    for (std::size_t i = 0; i < cycle.size(); ++i) {
        const Wait& wait = cycle[i];
        out += fmt::format("{}rank {} is at op {} ({}) and waits for {}, op {} of rank {}", i > 0 ? "; " : "",
                           wait.rank, opNumber(wait.position), toText(wait.op), toText(wait.waitsFor),
                           opNumber(wait.onPosition), wait.onRank);
    }
    return out;
}

Error blockedError(const Schedule& schedule, const OpIndex& index, const std::vector<Wait>& cycle)
{
    if (!cycle.empty())
        return {ErrorCode::Invalid, describeCycle(cycle), "move one of these ops before the op that blocks it"};
    for (std::size_t r = 0; r < schedule.order.size(); ++r)
        for (std::size_t i = 0; i < schedule.order[r].size(); ++i) {
            const Op& op = schedule.order[r][i];
            std::string message;
            index.eachInput(op, [&](std::uint32_t id, const Need& need, int stage) {
                if (!message.empty()) return;
                if (id == noOp) {
                    message =
                        fmt::format("rank {}, op {} ({}): waits for the {} of stage {}, which is not in the schedule",
                                    r, opNumber(i), toText(op), ruleOf(need.kind).title, stage);
                    return;
                }
                const OpPlace place = index.placeOf(id);
                if (static_cast<std::size_t>(place.rank) == r &&
                    (place.position >= i ||
                     (place.position + 1 == i && schedule.isPaired(static_cast<int>(r), place.position))))
                    message = fmt::format("rank {}, op {} ({}): waits for {}, which is op {} of the same rank", r,
                                          opNumber(i), toText(op), toText(schedule.order[r][place.position]),
                                          opNumber(place.position));
            });
            if (!message.empty()) return {ErrorCode::Invalid, message, "validate the schedule: it lists every fault"};
        }
    return {ErrorCode::Invalid, "the ops wait for each other and none can start", ""};
}

} // namespace stagewright
