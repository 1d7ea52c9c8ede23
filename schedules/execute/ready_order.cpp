#include "schedules/execute/ready_order.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "schedules/base/text.h"
#include "schedules/execute/simulate.h"
#include "schedules/messages/message_delay.h"
#include "schedules/model/activation.h"
#include "schedules/model/kinds.h"
#include "schedules/model/op_index.h"

namespace stagewright {

namespace {

constexpr std::string_view firstNames[] = {"arrival", "forward_first", "backward_first"};
constexpr Nanos notYet = std::numeric_limits<Nanos>::max();
constexpr std::size_t searched = 512; // ops of a list behind its next one

class ReadyRun {
public:
    ReadyRun(const Schedule& schedule, const CellSpace& cells, const CostModel& costs, const ReadyOrder& order)
        : m_schedule(schedule), m_order(order), m_index(schedule, cells), m_durations(durationsOf(schedule, costs)),
          m_activations(schedule, costs), m_ranks(static_cast<std::size_t>(schedule.ranks))
    {
        addInputs(costs);
        for (std::size_t r = 0; r < m_ranks.size(); ++r) {
            Rank& rank = m_ranks[r];
            Bytes held = 0;
            const auto& ops = schedule.order[r];
            for (std::size_t i = 0; i < ops.size(); ++i) {
                const auto id = m_index.idOf(static_cast<int>(r), i);
                if (i == 0 || !schedule.isPaired(static_cast<int>(r), i - 1)) rank.left.push_back(id);
                rank.most = std::max(rank.most, held += changeOf(ops[i]));
            }
            if (order.limit > 0) {
                Bytes microbatch = 0;
                for (int stage = 0; stage < schedule.stages; ++stage)
                    if (holds(ops, stage)) microbatch += costs.memory[static_cast<std::size_t>(stage)].activation;
                // The list itself can run in any case.
                rank.most = std::max(rank.most, order.limit * microbatch);
            }
        }
    }

    Schedule run()
    {
        for (std::size_t r = 0; r < m_ranks.size(); ++r) m_events.push({0, none, r});
        while (!m_events.empty()) {
            const Nanos now = m_events.top().at;
            while (!m_events.empty() && m_events.top().at == now) { // what comes now has come when ranks choose
                const Event event = m_events.top();
                m_events.pop();
                if (event.op != none) end(event.op, event.rank, now);
                m_touched.push_back(event.rank);
            }
            for (const std::size_t rank : std::exchange(m_touched, {})) start(rank, now);
        }
        Schedule out = m_schedule;
        for (std::size_t r = 0; r < m_ranks.size(); ++r) {
            auto ran = std::move(m_ranks[r].ran);
            ran.insert(ran.end(), m_ranks[r].left.begin(), m_ranks[r].left.end()); // none of a valid schedule
            out.order[r].clear();
            if (r < out.paired.size()) out.paired[r].clear();
            for (const std::uint32_t id : ran) {
                if (opsOf(id, r) == 2) out.paired[r].push_back(static_cast<std::uint32_t>(out.order[r].size()));
                for (std::uint32_t k = 0; k < opsOf(id, r); ++k) out.order[r].push_back(opOf(id + k, r));
            }
        }
        return out;
    }

private:
    static constexpr std::uint32_t none = noOp;
    struct Event {
        Nanos at;
        std::uint32_t op; // ends; none: an input has come
        std::size_t rank;
        bool operator<(const Event& other) const { return at > other.at; }
    };
    struct Rank {
        std::vector<std::uint32_t> left; // of its list
        std::vector<std::uint32_t> ran;
        bool busy = false;
        Bytes held = 0, most = 0;
        int started = 0;                  // forwards
        std::optional<bool> backwardNext; // by arrival: what follows whatever has come
    };

    const Op& opOf(std::uint32_t id, std::size_t rank) const
    {
        return m_schedule.order[rank][id - m_index.idOf(static_cast<int>(rank), 0)];
    }
    // An overlapped pair goes as one, by the first of its ops.
    std::uint32_t opsOf(std::uint32_t id, std::size_t rank) const
    {
        const int r = static_cast<int>(rank);
        return m_schedule.isPaired(r, id - m_index.idOf(r, 0)) ? 2 : 1;
    }
    Bytes changeOf(std::uint32_t id, std::size_t rank) const
    {
        Bytes out = 0;
        for (std::uint32_t k = 0; k < opsOf(id, rank); ++k) out += changeOf(opOf(id + k, rank));
        return out;
    }
    Bytes changeOf(const Op& op) const
    {
        Bytes out = 0;
        for (int k = 0; k < op.count; ++k) out += m_activations.deltaOf(op, k);
        return out;
    }
    static bool holds(const std::vector<Op>& ops, int stage)
    {
        return std::any_of(ops.begin(), ops.end(),
                           [&](const Op& op) { return isForward(op.kind) && static_cast<int>(op.stage) == stage; });
    }

    void addInputs(const CostModel& costs)
    {
        m_missing.resize(m_index.opCount());
        m_ready.resize(m_index.opCount());
        m_users.resize(m_index.opCount());
        const auto boundary = boundaryOf(m_schedule, costs);
        for (std::size_t r = 0; r < m_schedule.order.size(); ++r)
            for (std::size_t i = 0; i < m_schedule.order[r].size(); ++i) {
                const Op& op = m_schedule.order[r][i];
                const bool second = i > 0 && m_schedule.isPaired(static_cast<int>(r), i - 1);
                const auto id = m_index.idOf(static_cast<int>(r), i) - (second ? 1 : 0);
                m_index.eachInput(op, [&](std::uint32_t producer, const Need&, int stage) {
                    if (producer == noOp || (second && producer == id)) return;
                    const bool own = m_index.placeOf(producer).rank == static_cast<int>(r);
                    const Nanos delay = own ? 0
                                            : messageDelay(m_schedule, costs.links, boundary, op, stage,
                                                           static_cast<int>(r), m_index.cells().slices);
                    ++m_missing[id];
                    m_users[producer].push_back({id, r, delay});
                });
            }
    }

    void end(std::uint32_t id, std::size_t r, Nanos now)
    {
        Rank& rank = m_ranks[r];
        const Op& op = opOf(id, r);
        rank.busy = false;
        if (m_order.by == ReadyOrder::By::Arrival) {
            if (isForward(op.kind) && r + 1 == m_ranks.size()) rank.backwardNext = true;
            if (isReturn(op.kind) && r == 0) rank.backwardNext = false;
        }
        for (std::uint32_t k = 0; k < opsOf(id, r); ++k)
            for (const User& user : m_users[id + k]) {
                m_ready[user.op] = std::max(m_ready[user.op], now + user.delay);
                if (--m_missing[user.op] == 0) m_events.push({m_ready[user.op], none, user.rank});
            }
    }
    // From when its inputs are there; notYet: not known.
    Nanos readyAt(std::uint32_t id) const { return m_missing[id] > 0 ? notYet : m_ready[id]; }

    void start(std::size_t r, Nanos now)
    {
        Rank& rank = m_ranks[r];
        if (rank.busy || rank.left.empty()) return;
        const auto chosen = m_order.by == ReadyOrder::By::Arrival ? byArrival(rank, r, now) : byHint(rank, r, now);
        if (!chosen) return;
        const std::uint32_t id = rank.left[*chosen];
        rank.left.erase(rank.left.begin() + static_cast<std::ptrdiff_t>(*chosen));
        rank.ran.push_back(id);
        rank.busy = true;
        rank.held += changeOf(id, r);
        rank.started += isForward(opOf(id, r).kind) ? 1 : 0;
        const Nanos duration = m_durations[id] + (opsOf(id, r) == 2 ? m_durations[id + 1] : 0);
        m_events.push({now + duration, id, r});
    }

    std::optional<std::size_t> byArrival(Rank& rank, std::size_t r, Nanos now)
    {
        std::optional<std::size_t> forward, backward;
        for (std::size_t i = 0; i < rank.left.size() && !(forward && backward); ++i) {
            const OpKind kind = opOf(rank.left[i], r).kind;
            if (isForward(kind) && !forward) forward = i;
            if (isReturn(kind) && !backward) backward = i;
        }
        if (!forward && !backward)
            return readyAt(rank.left.front()) <= now ? std::optional<std::size_t>(0) : std::nullopt;
        const auto came = [&](const std::optional<std::size_t>& at) { return at ? readyAt(rank.left[*at]) : notYet; };
        if (rank.backwardNext && (*rank.backwardNext ? backward : forward)) {
            const bool back = *std::exchange(rank.backwardNext, std::nullopt);
            return back ? backward : forward;
        }
        if (r == 0) { // its forwards need nothing
            const int limit = m_order.limit > 0 ? m_order.limit : m_schedule.ranks;
            if (forward && rank.started < limit) return forward;
            return came(backward) <= now ? backward : std::nullopt;
        }
        const bool forwardCame = came(forward) <= now, backwardCame = came(backward) <= now;
        if (!forwardCame || !backwardCame) return forwardCame ? forward : backwardCame ? backward : std::nullopt;
        const bool takesForward = m_order.first == ReadyOrder::First::Forward ||
                                  (m_order.first == ReadyOrder::First::Came && came(forward) <= came(backward));
        return takesForward ? forward : backward;
    }

    std::optional<std::size_t> byHint(const Rank& rank, std::size_t r, Nanos now) const
    {
        if (readyAt(rank.left.front()) <= now) return 0;
        Bytes held = rank.held, most = rank.held; // of the list up to the op that may go ahead
        std::vector<std::pair<OpKind, int>> passed;
        for (std::size_t i = 0; i < std::min(rank.left.size(), searched); ++i) {
            const std::uint32_t id = rank.left[i];
            const Op& op = opOf(id, r);
            if (worksOnState(op.kind) || isDelay(op.kind)) return std::nullopt; // all before it comes before it
            const std::pair<OpKind, int> same{op.kind, static_cast<int>(op.stage)};
            const bool mayGoAhead =
                opsOf(id, r) == 1 && (isForward(op.kind) || (isCompute(op.kind) && isDeferrable(op.kind)));
            if (mayGoAhead && readyAt(id) <= now && std::find(passed.begin(), passed.end(), same) == passed.end() &&
                most + changeOf(op) <= rank.most)
                return i;
            for (std::uint32_t k = 0; k < opsOf(id, r); ++k)
                passed.emplace_back(opOf(id + k, r).kind, static_cast<int>(opOf(id + k, r).stage));
            most = std::max(most, held += changeOf(id, r));
        }
        return std::nullopt;
    }

    struct User {
        std::uint32_t op;
        std::size_t rank;
        Nanos delay;
    };
    const Schedule& m_schedule;
    ReadyOrder m_order;
    OpIndex m_index;
    std::vector<Nanos> m_durations;
    ActivationRule m_activations;
    std::vector<Rank> m_ranks;
    std::vector<int> m_missing;             // by op: inputs that have not ended
    std::vector<Nanos> m_ready;             // by op: when the last that has ended is there
    std::vector<std::vector<User>> m_users; // by op
    std::priority_queue<Event> m_events;
    std::vector<std::size_t> m_touched;
};

Result<void> checkLists(const Schedule& schedule, const ReadyOrder& order)
{
    const auto refuse = [&](const char* what, const char* remedy) {
        return fail(ErrorCode::Usage, fmt::format("--order {}: {} {}", toText(order), schedule.name, what), remedy);
    };
    const bool arrival = order.by == ReadyOrder::By::Arrival;
    if (arrival && schedule.stages != schedule.ranks)
        return refuse("has several stages on a rank or several ranks for a stage", "use --order hint");
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        bool other = false;
        for (const Op& op : schedule.order[r]) {
            other = other || !isCompute(op.kind);
            if (arrival && other && isCompute(op.kind))
                return refuse("has other ops between its passes", "use --order hint");
            if (isMessage(op.kind))
                return refuse("has sends and receives in its lists",
                              "give it without them; --lower inserts them behind");
            if (isCopy(op.kind)) return refuse("has copies to the host in its lists", "leave out --offload");
            const bool pass =
                (isForward(op.kind) || isFullBackward(op.kind)) && op.count == 1 && op.slice < 0 && op.half == 0;
            if (arrival && isCompute(op.kind) && (!pass || op.stage != r))
                return refuse("has other ops than a forward and a backward of a microbatch, on the rank of its stage",
                              "use --order hint");
        }
    }
    return {};
}

} // namespace

Result<ReadyOrder> parseReadyOrder(std::string_view text)
{
    ReadyOrder out;
    const auto wrong = [&](std::string what) {
        return fail(ErrorCode::Usage, std::move(what),
                    "write list, hint, hint:limit=6, arrival or arrival:limit=8,rule=forward_first");
    };
    const std::size_t colon = text.find(':');
    const std::string_view by = text.substr(0, colon);
    if (by == "arrival") out.by = ReadyOrder::By::Arrival;
    if (by == "hint") out.by = ReadyOrder::By::Hint;
    if (out.by == ReadyOrder::By::List && by != "list") return wrong(fmt::format("there is no order '{}'", by));
    if (colon == std::string_view::npos) return out;
    std::string rest(text.substr(colon + 1));
    std::replace(rest.begin(), rest.end(), ':', ',');
    for (const std::string_view part : split(rest, ",")) {
        const auto [key, value] = keyValueOf(part);
        if (key == "limit" && value && out.by != ReadyOrder::By::List) {
            const auto limit = numberOf(std::string(*value));
            if (!limit || *limit < 1 || *limit > 1'000'000 || *limit != static_cast<int>(*limit))
                return wrong(fmt::format("'{}' is not a limit of 1 to 1000000 microbatches", *value));
            out.limit = static_cast<int>(*limit);
        } else if (key == "rule" && value && out.by == ReadyOrder::By::Arrival) {
            const auto* found = std::find(std::begin(firstNames), std::end(firstNames), *value);
            if (found == std::end(firstNames)) return wrong(fmt::format("there is no rule '{}'", *value));
            out.first = static_cast<ReadyOrder::First>(found - std::begin(firstNames));
        } else {
            return wrong(fmt::format("'{}' does not belong to the order {}", part, by));
        }
    }
    return out;
}

std::string toText(const ReadyOrder& order)
{
    if (order.by == ReadyOrder::By::List) return "list";
    std::string out = order.by == ReadyOrder::By::Arrival ? "arrival" : "hint";
    if (order.limit > 0) out += fmt::format(":limit={}", order.limit);
    if (order.first != ReadyOrder::First::Came)
        out += fmt::format("{}rule={}", order.limit > 0 ? "," : ":", firstNames[static_cast<std::size_t>(order.first)]);
    return out;
}

Result<Schedule> orderByReadiness(const Schedule& schedule, const CostModel& costs, const ReadyOrder& order)
{
    if (order.by == ReadyOrder::By::List) return schedule;
    STAGEWRIGHT_CHECK(checkLists(schedule, order));
    STAGEWRIGHT_TRY(const auto cells, cellsOf(schedule));
    return ReadyRun(schedule, cells, costs, order).run();
}

} // namespace stagewright
