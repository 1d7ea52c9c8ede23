#include "schedules/messages/wait_graph.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/messages/message_execution.h"

namespace stagewright {

namespace {

// Compute-only lists, run without times as far as they go.
class ListRun {
public:
    // strict: an input that nobody makes, or that comes later in the same list, blocks; else it counts as present.
    ListRun(const Schedule& schedule, const OpIndex& index, bool strict)
        : m_schedule(schedule), m_index(index), m_strict(strict), m_head(schedule.order.size(), 0),
          m_waits(m_head.size()), m_stuck(m_head.size(), 0)
    {
    }

    void run()
    {
        const std::size_t ranks = m_head.size();
        std::vector<std::vector<int>> waiters(ranks); // ranks that wait for a rank; the woken ones look again
        std::vector<int> runnable;
        for (std::size_t r = ranks; r-- > 0;) runnable.push_back(static_cast<int>(r));
        while (!runnable.empty()) {
            const int rank = runnable.back();
            const auto r = static_cast<std::size_t>(rank);
            runnable.pop_back();
            advance(rank);
            if (m_stuck[r] && m_waits[r].onRank >= 0)
                waiters[static_cast<std::size_t>(m_waits[r].onRank)].push_back(rank);
            std::erase_if(waiters[r], [&](int waiter) {
                const bool woken =
                    static_cast<std::size_t>(m_waits[static_cast<std::size_t>(waiter)].onPosition) < m_head[r];
                if (woken) runnable.push_back(waiter);
                return woken;
            });
        }
    }

    const std::vector<std::size_t>& head() const { return m_head; } // by rank: ops that ran

    // The first stuck rank and those it leads to: where each waits for a stuck one the walk ends in a cycle.
    std::vector<Wait> cycle() const
    {
        const auto first = std::find(m_stuck.begin(), m_stuck.end(), 1);
        if (first == m_stuck.end()) return {};
        std::vector<char> seen(m_stuck.size(), 0);
        auto rank = static_cast<std::size_t>(first - m_stuck.begin());
        while (!seen[rank]) {
            seen[rank] = 1;
            rank = static_cast<std::size_t>(m_waits[rank].onRank);
        }
        std::vector<Wait> cycle;
        const std::size_t begin = rank;
        do {
            cycle.push_back(m_waits[rank]);
            rank = static_cast<std::size_t>(m_waits[rank].onRank);
        } while (rank != begin);
        const auto smallest =
            std::min_element(cycle.begin(), cycle.end(), [](const Wait& a, const Wait& b) { return a.rank < b.rank; });
        std::rotate(cycle.begin(), smallest, cycle.end());
        return cycle;
    }

private:
    bool isPaired(int rank, std::size_t position) const
    {
        return static_cast<std::size_t>(rank) < m_schedule.paired.size() && m_schedule.isPaired(rank, position);
    }

    void advance(int rank)
    {
        const auto r = static_cast<std::size_t>(rank);
        m_stuck[r] = 0;
        while (m_head[r] < m_schedule.order[r].size()) {
            if (blocked(rank)) {
                m_stuck[r] = 1;
                return;
            }
            m_head[r] += isPaired(rank, m_head[r]) ? 2 : 1;
        }
    }

    // What the op or pair at the head of `rank` waits for, if anything: on rank -1 if that never comes.
    bool blocked(int rank)
    {
        const auto r = static_cast<std::size_t>(rank);
        const auto& ops = m_schedule.order[r];
        const std::size_t at = m_head[r];
        const std::size_t last = isPaired(rank, at) ? at + 1 : at;
        bool found = false;
        for (std::size_t i = at; i <= last && !found; ++i)
            m_index.eachInput(ops[i], [&](std::uint32_t id, const Need&, std::size_t) {
                if (found) return;
                const bool made = id != noOp;
                const OpPlace place = made ? m_index.placeOf(id) : OpPlace{};
                if (!made || place.rank == rank) {
                    found = m_strict && (!made || place.position >= at);
                    if (found) m_waits[r] = {rank, static_cast<int>(i), ops[i], -1, 0, {}};
                    return;
                }
                if (place.position < m_head[static_cast<std::size_t>(place.rank)]) return;
                found = true;
                m_waits[r] = {rank,
                              static_cast<int>(i),
                              ops[i],
                              place.rank,
                              static_cast<int>(place.position),
                              m_schedule.order[static_cast<std::size_t>(place.rank)][place.position]};
            });
        return found;
    }

    const Schedule& m_schedule;
    const OpIndex& m_index;
    bool m_strict;
    std::vector<std::size_t> m_head;
    std::vector<Wait> m_waits; // by rank, where it is stuck
    std::vector<char> m_stuck;
};

} // namespace

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

namespace {

std::vector<Wait> waitsOf(const MessageExecution& execution, const Schedule& schedule, const OpIndex& index)
{
    std::vector<Wait> waits;
    for (int r = 0; r < schedule.ranks; ++r)
        for (const auto& obstacle : execution.obstacles(r)) {
            if (obstacle.awaited == noOp) continue;
            const OpPlace at = index.placeOf(obstacle.op);
            const OpPlace on = index.placeOf(obstacle.awaited);
            waits.push_back({r, static_cast<int>(at.position), schedule.order[static_cast<std::size_t>(r)][at.position],
                             on.rank, static_cast<int>(on.position),
                             schedule.order[static_cast<std::size_t>(on.rank)][on.position]});
        }
    return waits;
}

} // namespace

std::vector<Wait> findDeadlock(const Schedule& schedule, const OpIndex& index, const Channels& channels)
{
    if (needsMessageExecution(schedule)) {
        MessageExecution execution(schedule, index, channels);
        if (execution.run()) return {};
        return shortestCycle(schedule.ranks, waitsOf(execution, schedule, index));
    }
    ListRun lists(schedule, index, false);
    lists.run();
    return lists.cycle();
}

std::vector<std::size_t> runnableOps(const Schedule& schedule, const OpIndex& index)
{
    ListRun lists(schedule, index, true);
    lists.run();
    return lists.head();
}

std::string describeCycle(const std::vector<Wait>& cycle)
{
    std::string out = fmt::format("deadlock of {} ranks: ", cycle.size());
    for (std::size_t i = 0; i < cycle.size(); ++i) {
        const Wait& wait = cycle[i];
        out +=
            fmt::format("{}rank {} is at op {} ({}) and waits for {}, op {} of rank {}", i > 0 ? "; " : "", wait.rank,
                        wait.position, toText(wait.op), toText(wait.waitsFor), wait.onPosition, wait.onRank);
    }
    return out;
}

Error blockedError(const Schedule& schedule, const CellSpace& cells, const Channels& channels)
{
    const OpIndex index(schedule, cells);
    if (const auto cycle = findDeadlock(schedule, index, channels); !cycle.empty())
        return {ErrorCode::Invalid, describeCycle(cycle), "move one of these ops before the op that blocks it"};
    for (std::size_t r = 0; r < schedule.order.size(); ++r)
        for (std::size_t i = 0; i < schedule.order[r].size(); ++i) {
            const Op& op = schedule.order[r][i];
            std::string message;
            index.eachInput(op, [&](std::uint32_t id, const Need& need, std::size_t) {
                if (!message.empty()) return;
                if (id == noOp) {
                    message =
                        fmt::format("rank {}, op {} ({}): waits for the {} of stage {}, which is not in the schedule",
                                    r, i, toText(op), ruleOf(need.kind).title, op.stage + need.stageOffset);
                    return;
                }
                const OpPlace place = index.placeOf(id);
                if (static_cast<std::size_t>(place.rank) == r &&
                    (place.position >= i ||
                     (place.position + 1 == i && schedule.isPaired(static_cast<int>(r), place.position))))
                    message = fmt::format("rank {}, op {} ({}): waits for {}, which is op {} of the same rank", r, i,
                                          toText(op), toText(schedule.order[r][place.position]), place.position);
            });
            if (!message.empty()) return {ErrorCode::Invalid, message, "validate the schedule: it lists every fault"};
        }
    return {ErrorCode::Invalid, "the ops wait for each other and none can start", ""};
}

} // namespace stagewright
