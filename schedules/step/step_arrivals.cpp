#include "schedules/step/step_arrivals.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "schedules/messages/link_lane.h"
#include "schedules/messages/message_delay.h"

namespace stagewright {

StepArrivals::StepArrivals(const Schedule& schedule, const OpIndex& index, const StepRules& rules,
                           std::span<const Nanos> ends)
    : m_schedule(schedule), m_index(index), m_rules(rules), m_ends(ends)
{
    if (!sharesBandwidth(rules.links, rules.boundary, rules.channels)) return;
    std::map<std::pair<int, int>, LinkLane> lanes;
    CardLanes cards(rules.links, rules.channels);
    const std::vector<Message> messages = messagesBySender(schedule, index);
    std::vector<std::size_t> order(messages.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (cards.any()) // ways of many ranks share them: in the order of time (step_run_in_time.cpp)
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            const Message &one = messages[a], &other = messages[b];
            return std::tuple(ends[one.producer], one.fromRank, one.producer) <
                   std::tuple(ends[other.producer], other.fromRank, other.producer);
        });
    m_flights.resize(messages.size());
    for (const std::size_t i : order) {
        const Message& message = messages[i];
        const Transit transit = messageTransit(schedule, rules.links, rules.boundary, message.receive,
                                               message.send.stage, message.toRank, index.cells().slices);
        const Nanos begin = cards.take(lanes[{message.fromRank, message.toRank}], message.fromRank, message.toRank,
                                       ends[message.producer], transit);
        m_flights[i] = {message.producer, message.consumer, {begin, begin + transit.delay}};
    }
}

StepArrivals::Way StepArrivals::between(std::uint32_t from, std::uint32_t to, const Op& op, int rank, int stage) const
{
    Way out{m_ends[from], m_ends[from]};
    if (stage == op.stage) return out;
    bool flies = false; // in several messages: the last one counts
    auto at = std::lower_bound(m_flights.begin(), m_flights.end(), from,
                               [](const Flight& flight, std::uint32_t of) { return flight.from < of; });
    for (; at != m_flights.end() && at->from == from; ++at)
        if (at->to == to && (!flies || at->way.arrival > out.arrival)) out = at->way, flies = true;
    if (!flies)
        out.arrival +=
            messageDelay(m_schedule, m_rules.links, m_rules.boundary, op, stage, rank, m_index.cells().slices);
    return out;
}

} // namespace stagewright
