#include "schedules/execute/ready_order.h"

#include <algorithm>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "schedules/base/text.h"
#include "schedules/execute/ready_chooser.h"
#include "schedules/execute/simulate.h"
#include "schedules/messages/message_delay.h"
#include "schedules/model/op_index.h"

namespace stagewright {

namespace {

constexpr std::string_view firstNames[] = {"arrival", "forward_first", "backward_first"};

// The clock that a simulation's ranks choose by.
class ReadyRun {
public:
    ReadyRun(const Schedule& schedule, const CellSpace& cells, const CostModel& costs, const ReadyOrder& order)
        : m_schedule(schedule), m_index(schedule, cells), m_durations(durationsOf(schedule, costs))
    {
        m_ranks.reserve(schedule.order.size());
        for (int rank = 0; rank < schedule.ranks; ++rank)
            m_ranks.push_back({{schedule, costs, order, rank}, {}, false});
        addInputs(costs);
        for (Rank& rank : m_ranks) rank.chooser.restart();
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
        std::vector<std::vector<std::size_t>> ran;
        for (Rank& rank : m_ranks) ran.push_back(std::move(rank.ran));
        return inOrder(m_schedule, ran);
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
        ReadyChooser chooser;
        std::vector<std::size_t> ran; // places in its list
        bool busy = false;
    };

    std::size_t placeOf(std::uint32_t id) const { return m_index.placeOf(id).position; }
    std::size_t opsOf(std::uint32_t id, std::size_t rank) const
    {
        return m_schedule.isPaired(static_cast<int>(rank), placeOf(id)) ? 2 : 1;
    }

    void addInputs(const CostModel& costs)
    {
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
                    m_ranks[r].chooser.expect(placeOf(id));
                    m_users[producer].push_back({id, r, delay});
                });
            }
    }

    void end(std::uint32_t id, std::size_t r, Nanos now)
    {
        m_ranks[r].busy = false;
        m_ranks[r].chooser.ended(placeOf(id));
        for (std::uint32_t k = 0; k < opsOf(id, r); ++k)
            for (const User& user : m_users[id + k]) {
                ReadyChooser& chooser = m_ranks[user.rank].chooser;
                if (chooser.supply(placeOf(user.op), now + user.delay))
                    m_events.push({chooser.readyFrom(placeOf(user.op)), none, user.rank});
            }
    }

    void start(std::size_t r, Nanos now)
    {
        Rank& rank = m_ranks[r];
        if (rank.busy) return;
        const auto chosen = rank.chooser.choose(now);
        if (!chosen) return;
        rank.chooser.started(*chosen);
        rank.ran.push_back(*chosen);
        rank.busy = true;
        const std::uint32_t id = m_index.idOf(static_cast<int>(r), *chosen);
        const Nanos duration = m_durations[id] + (opsOf(id, r) == 2 ? m_durations[id + 1] : 0);
        m_events.push({now + duration, id, r});
    }

    struct User {
        std::uint32_t op;
        std::size_t rank;
        Nanos delay;
    };
    const Schedule& m_schedule;
    OpIndex m_index;
    std::vector<Nanos> m_durations;
    std::vector<Rank> m_ranks;
    std::vector<std::vector<User>> m_users; // by op
    std::priority_queue<Event> m_events;
    std::vector<std::size_t> m_touched;
};

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

Schedule inOrder(const Schedule& schedule, std::span<const std::vector<std::size_t>> ran)
{
    Schedule out = schedule;
    for (std::size_t r = 0; r < ran.size(); ++r) {
        const std::vector<Op>& list = schedule.order[r];
        std::vector<char> there(list.size(), 0);
        out.order[r].clear();
        if (r < out.paired.size()) out.paired[r].clear();
        const auto append = [&](std::size_t at) {
            const std::size_t count = schedule.isPaired(static_cast<int>(r), at) ? 2 : 1;
            if (count == 2) out.paired[r].push_back(static_cast<std::uint32_t>(out.order[r].size()));
            for (std::size_t k = at; k < at + count; ++k) {
                out.order[r].push_back(list[k]);
                there[k] = 1;
            }
        };
        for (const std::size_t at : ran[r]) append(at);
        for (std::size_t at = 0; at < list.size(); ++at)
            if (there[at] == 0) append(at); // none of a valid schedule
    }
    return out;
}

Result<Schedule> orderByReadiness(const Schedule& schedule, const CostModel& costs, const ReadyOrder& order)
{
    if (order.by == ReadyOrder::By::List) return schedule;
    STAGEWRIGHT_CHECK(checkReadyOrder(schedule, order));
    STAGEWRIGHT_TRY(const auto cells, cellsOf(schedule));
    return ReadyRun(schedule, cells, costs, order).run();
}

} // namespace stagewright
