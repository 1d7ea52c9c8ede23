#include "engine/training/message_order.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "schedules/messages/messages.h"
#include "schedules/model/groups.h"

namespace stagewright {

namespace {

// More than nothing where an op may have an output: what it makes comes behind what it takes.
std::int64_t unitsOf(const Op& op)
{
    return isFullBackward(op.kind) ? std::int64_t{2} * op.count : std::max<std::int64_t>(1, op.count);
}

using TimedMessage = std::pair<std::int64_t, OrderedMessage>;

// Messages of the same time stay in the order given.
std::vector<OrderedMessage> byTime(std::vector<TimedMessage> messages)
{
    std::stable_sort(messages.begin(), messages.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<OrderedMessage> all;
    all.reserve(messages.size());
    for (const auto& [time, message] : messages) all.push_back(message);
    return all;
}

// Runs compute-only lists, whose sends wait for nobody.
class Sweep {
public:
    explicit Sweep(const ExecutionPlan& plan) : m_plan(plan), m_next(plan.ranks.size(), 0), m_time(plan.ranks.size(), 0)
    {
    }

    std::vector<OrderedMessage> order()
    {
        for (bool moved = true; moved;) {
            moved = false;
            for (std::size_t rank = 0; rank < m_next.size(); ++rank)
                while (runNext(rank)) moved = true;
        }
        return byTime(std::move(m_made));
    }

private:
    // The rank's next op, or pair, once its inputs are there; as the rank loop does it.
    bool runNext(std::size_t rank)
    {
        const RankPlan& plan = m_plan.ranks[rank];
        const std::size_t first = m_next[rank];
        if (first >= plan.ops.size()) return false;
        const std::size_t count = plan.ops[first].pairedWithNext && first + 1 < plan.ops.size() ? 2 : 1;
        std::int64_t time = m_time[rank];
        for (std::size_t i = first; i < first + count; ++i)
            for (const PlannedMessage& input : plan.inputsOf(plan.ops[i])) {
                if (input.rank == static_cast<int>(rank)) continue;
                const auto found = m_there.find(input.key);
                if (found == m_there.end()) return false;
                time = std::max(time, found->second);
            }
        for (std::size_t i = first; i < first + count; ++i) {
            time += unitsOf(plan.ops[i].op);
            for (const PlannedPart& part : plan.partsOf(plan.ops[i]))
                for (const PlannedMessage& output : plan.outputsOf(part)) {
                    if (output.rank == static_cast<int>(rank)) continue;
                    m_there[output.key] = time;
                    m_made.push_back({time, {output.key, static_cast<int>(rank), output.rank}});
                }
        }
        m_time[rank] = time;
        m_next[rank] = first + count;
        return true;
    }

    const ExecutionPlan& m_plan;
    std::vector<std::size_t> m_next;  // by rank
    std::vector<std::int64_t> m_time; // likewise
    std::map<MessageKey, std::int64_t> m_there;
    std::vector<TimedMessage> m_made;
};

// Runs lists that say when messages are sent and received, and whose sends wait for their receives.
class ListSweep {
public:
    ListSweep(const ExecutionPlan& plan, const Schedule& lists, bool blockingReceives)
        : m_plan(plan), m_lists(lists), m_blocking(blockingReceives), m_ranks(plan.ranks.size())
    {
    }

    std::vector<OrderedMessage> order()
    {
        for (bool moved = true; moved;) {
            moved = false;
            for (std::size_t rank = 0; rank < m_ranks.size(); ++rank)
                while (runNext(rank)) moved = true;
        }
        // Lists that wait for themselves: what comes behind is never posted.
        for (std::size_t rank = 0; rank < m_ranks.size(); ++rank)
            for (std::size_t i = m_ranks[rank].next; i < m_lists.order[rank].size(); ++i)
                if (!m_ranks[rank].begun || i >= m_ranks[rank].next + countAt(rank))
                    send(rank, m_lists.order[rank][i], last);
        return byTime(std::move(m_sends));
    }

private:
    static constexpr std::int64_t last = std::int64_t{1} << 62;
    struct Rank {
        std::size_t next = 0; // in its list
        std::size_t op = 0;   // in its plan
        std::int64_t time = 0;
        bool begun = false; // the messages at `next`
    };

    std::size_t countAt(std::size_t rank) const
    {
        return groupSize(m_lists, static_cast<int>(rank), m_ranks[rank].next);
    }
    template <typename Visit>
    static void eachKey(const Op& op, Visit&& visit)
    {
        MessageKey key = messageOf(isSend(op.kind) ? receiveOf(op) : op);
        for (int k = 0; k < op.count; ++k, ++key.microbatch) visit(key);
    }
    void send(std::size_t rank, const Op& op, std::int64_t time)
    {
        if (!isSend(op.kind)) return;
        const Op receive = receiveOf(op);
        const int to = m_lists.placement.rankOf(receive.stage, receive.microbatch);
        eachKey(op, [&](const MessageKey& key) {
            m_sent[key] = time;
            m_sends.push_back({time, {key, static_cast<int>(rank), to}});
        });
    }

    bool runNext(std::size_t number)
    {
        Rank& rank = m_ranks[number];
        const std::vector<Op>& list = m_lists.order[number];
        if (rank.next >= list.size()) return false;
        const std::size_t count = countAt(number);
        if (isMessage(list[rank.next].kind) ? !exchange(rank, number, count) : !compute(rank, number, count))
            return false;
        rank.next += count;
        rank.begun = false;
        return true;
    }

    // One message, or several that are posted together: done when each is.
    bool exchange(Rank& rank, std::size_t number, std::size_t count)
    {
        const std::vector<Op>& list = m_lists.order[number];
        for (std::size_t i = rank.next; i < rank.next + count && !rank.begun; ++i) {
            if (isReceive(list[i].kind)) eachKey(list[i], [&](const MessageKey& key) { m_offered[key] = rank.time; });
            send(number, list[i], rank.time);
        }
        rank.begun = true;
        std::int64_t time = rank.time;
        bool done = true;
        for (std::size_t i = rank.next; i < rank.next + count; ++i) {
            const auto& other = isSend(list[i].kind) ? m_offered : m_sent;
            if (isReceive(list[i].kind) && !m_blocking) continue;
            eachKey(list[i], [&](const MessageKey& key) {
                const auto found = other.find(key);
                done = done && found != other.end();
                if (found != other.end()) time = std::max(time, found->second);
            });
        }
        if (done) rank.time = time;
        return done;
    }

    bool compute(Rank& rank, std::size_t number, std::size_t count)
    {
        const RankPlan& plan = m_plan.ranks[number];
        // a gather of a file's lists
        if (rank.op >= plan.ops.size() || !(plan.ops[rank.op].op == m_lists.order[number][rank.next])) return true;
        std::int64_t time = rank.time;
        for (std::size_t i = rank.op; i < rank.op + count && i < plan.ops.size(); ++i) {
            for (const PlannedMessage& input : plan.inputsOf(plan.ops[i])) {
                if (input.rank == static_cast<int>(number)) continue;
                const auto sent = m_sent.find(input.key);
                const auto offered = m_offered.find(input.key);
                if (sent == m_sent.end() || offered == m_offered.end()) return false;
                time = std::max({time, sent->second, offered->second});
            }
        }
        for (std::size_t i = rank.op; i < rank.op + count && i < plan.ops.size(); ++i) time += unitsOf(plan.ops[i].op);
        rank.time = time;
        rank.op += count;
        return true;
    }

    const ExecutionPlan& m_plan;
    const Schedule& m_lists;
    bool m_blocking;
    std::vector<Rank> m_ranks;
    std::map<MessageKey, std::int64_t> m_sent;
    std::map<MessageKey, std::int64_t> m_offered;
    std::vector<TimedMessage> m_sends;
};

} // namespace

std::vector<OrderedMessage> messageOrder(const ExecutionPlan& plan) { return Sweep(plan).order(); }

std::vector<OrderedMessage> messageOrder(const ExecutionPlan& plan, const Schedule& lists, bool blockingReceives)
{
    return ListSweep(plan, lists, blockingReceives).order();
}

} // namespace stagewright
