#include "schedules/step/step_plan.h"

#include <utility>

#include "schedules/messages/message_delay.h"
#include "schedules/model/kinds.h"
#include "schedules/model/shard_rules.h"

namespace stagewright {

bool hasMessagesOrMeetings(const Schedule& schedule)
{
    const bool copies = schedule.placement.hasCopies();
    for (const auto& ops : schedule.order)
        for (const Op& op : ops)
            if (isMessage(op.kind) || runsApart(op.kind) || (copies && (isReduction(op.kind) || isGather(op.kind))))
                return true;
    return false;
}

Links untimedLinks(const Schedule& schedule)
{
    Links out;
    bool gathers = false;
    for (const auto& ops : schedule.order)
        for (const Op& op : ops) gathers = gathers || isGather(op.kind);
    if (gathers || schedule.replicas > 1) out.collectives = ResourceUse::Beside;
    return out;
}

StepPlan::StepPlan(const Schedule& schedule, const OpIndex& index, StepRules rules)
    : m_schedule(schedule), m_index(index), m_rules(std::move(rules)), m_pairs(schedule, index)
{
    addMessages();
    addInputs();
    if (m_messages.empty()) { // a message is in flight from its producer's end on
        if (sharesBandwidth(m_rules.links, m_rules.boundary, m_rules.channels))
            addFlights();
        else
            addDelays();
    }
    addMeetings();
    if (!m_rules.gradientBuckets.empty())
        for (const auto& list : schedule.order) m_stepsOnArrival.push_back(stepsOnArrival(list) ? 1 : 0);
}

const Op& StepPlan::op(std::uint32_t id) const
{
    const OpPlace place = m_index.placeOf(id);
    return m_schedule.order[static_cast<std::size_t>(place.rank)][place.position];
}

int StepPlan::bucketsOf(const Op& optimizer, int rank) const
{
    const bool steps = !m_stepsOnArrival.empty() && m_stepsOnArrival[static_cast<std::size_t>(rank)] != 0;
    return steps && optimizer.stage < m_rules.gradientBuckets.size()
               ? std::max(1, m_rules.gradientBuckets[optimizer.stage])
               : 1;
}

std::uint32_t StepPlan::linkOf(int from, int to)
{
    const auto key = (static_cast<std::uint64_t>(from) << 32) | static_cast<std::uint32_t>(to);
    const auto [at, fresh] = m_linkOfRanks.try_emplace(key, static_cast<std::uint32_t>(m_linkOfRanks.size()));
    if (fresh) m_linkEnds.emplace_back(from, to);
    return at->second;
}

void StepPlan::addMessages()
{
    m_messages.reserve(m_pairs.messages().size());
    for (const MessagePair& pair : m_pairs.messages()) {
        Message& message = m_messages.emplace_back(Message{pair, {}, 0});
        if (pair.send == noOp || pair.receive == noOp) continue;
        const OpPlace from = m_index.placeOf(pair.send);
        const OpPlace to = m_index.placeOf(pair.receive);
        const Op& send = m_schedule.order[static_cast<std::size_t>(from.rank)][from.position];
        const Op& receive = m_schedule.order[static_cast<std::size_t>(to.rank)][to.position];
        message.transit = messageTransit(m_schedule, m_rules.links, m_rules.boundary, receive, send.stage, to.rank,
                                         m_index.cells().slices);
        message.link = linkOf(from.rank, to.rank);
    }
}

void StepPlan::addInputs()
{
    const bool lowered = !m_messages.empty();
    // The last op that needs an op or message; one place more for what is never there.
    std::vector<std::uint32_t> opFor(m_index.opCount() + 1, noOp);
    std::vector<std::uint32_t> messageFor(m_messages.size() + 1, noOp);
    m_firstInput.push_back(0);
    for (int r = 0; r < m_schedule.ranks; ++r) {
        const auto& ops = m_schedule.order[static_cast<std::size_t>(r)];
        for (std::size_t i = 0; i < ops.size(); ++i) {
            const Op& op = ops[i];
            const std::uint32_t self = m_index.idOf(r, i);
            auto add = [&](const StepInput& input) {
                auto& known = input.message ? messageFor : opFor;
                if (std::exchange(known[std::min<std::size_t>(input.source, known.size() - 1)], self) != self)
                    m_inputs.push_back(input);
            };
            const auto addPart = [&](const Delivery& part) {
                const bool own = part.from.rank == r;
                const bool together = own && part.from.position + 1 == i && m_schedule.isPaired(r, part.from.position);
                if (part.producer == noOp || (own && (part.from.position >= i || together)))
                    add({});
                else if (!own && lowered && isCompute(op.kind))
                    add({part.message, true, 0});
                else if (!own || runsApart(this->op(part.producer).kind)) // which its list does not wait for
                    add({part.producer, false, 0});
                return true;
            };
            if (!isReceive(op.kind)) m_pairs.eachDelivery(m_schedule, m_index, op, r, addPart);
            m_firstInput.push_back(static_cast<std::uint32_t>(m_inputs.size()));
        }
    }
}

void StepPlan::addDelays()
{
    for (int r = 0; r < m_schedule.ranks; ++r)
        for (std::size_t i = 0; i < m_schedule.order[static_cast<std::size_t>(r)].size(); ++i) {
            const Op& consumer = m_schedule.order[static_cast<std::size_t>(r)][i];
            const std::uint32_t id = m_index.idOf(r, i);
            for (std::uint32_t at = m_firstInput[id]; at < m_firstInput[id + 1]; ++at) {
                if (m_inputs[at].source == noOp) continue;
                const int stage = op(m_inputs[at].source).stage;
                m_inputs[at].delay = messageDelay(m_schedule, m_rules.links, m_rules.boundary, consumer, stage, r,
                                                  m_index.cells().slices);
            }
        }
}

// Each message takes its link once its producer ends, so that those of a link do in the order of the sender's list.
void StepPlan::addFlights()
{
    m_firstFlight.assign(m_index.opCount() + 1, 0);
    for (const stagewright::Message& message : messagesBySender(m_schedule, m_index)) {
        const auto flight = static_cast<std::uint32_t>(m_flights.size());
        m_flights.push_back({linkOf(message.fromRank, message.toRank),
                             messageTransit(m_schedule, m_rules.links, m_rules.boundary, message.receive,
                                            message.send.stage, message.toRank, m_index.cells().slices)});
        ++m_firstFlight[message.producer + 1];
        for (std::uint32_t i = m_firstInput[message.consumer]; i < m_firstInput[message.consumer + 1]; ++i)
            if (m_inputs[i].source == message.producer) m_inputs[i].flight = flight;
    }
    for (std::size_t i = 1; i < m_firstFlight.size(); ++i) m_firstFlight[i] += m_firstFlight[i - 1];
}

void StepPlan::addMeetings()
{
    if (!m_schedule.placement.hasCopies()) return;
    std::unordered_map<std::uint64_t, std::uint32_t> known; // (stage, kind, how many before on the rank)
    for (int r = 0; r < m_schedule.ranks; ++r) {
        std::unordered_map<std::uint64_t, std::uint32_t> seen;
        const auto& ops = m_schedule.order[static_cast<std::size_t>(r)];
        for (std::size_t i = 0; i < ops.size(); ++i) {
            if (!isReduction(ops[i].kind) && (!collectivesBeside() || !isGather(ops[i].kind))) continue;
            const std::uint64_t what =
                (static_cast<std::uint64_t>(ops[i].stage) << 1) | (isGather(ops[i].kind) ? 1 : 0);
            const auto key = (what << 32) | seen[what]++;
            const auto [at, fresh] = known.try_emplace(key, static_cast<std::uint32_t>(m_meetings.size()));
            if (fresh) m_meetings.emplace_back();
            m_meetings[at->second].push_back(m_index.idOf(r, i));
            m_meetingOf[m_index.idOf(r, i)] = at->second;
        }
    }
}

bool StepPlan::ranksMeet() const
{
    return std::any_of(m_meetings.begin(), m_meetings.end(), [](const auto& members) { return members.size() > 1; });
}

} // namespace stagewright
