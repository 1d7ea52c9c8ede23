// StepPlan: what a step's lists wait for, compiled once from a schedule, its links, channels and sharing rules. Ops and
// messages are its nodes, ranks and links its resources; inputs are its edges; collectives of one stage that several
// ranks come to together are its meetings. StepRun (step_run.h) runs it, PlainRun (plain_run.h) runs lists that need
// none of it. Below the validator: any lists whose cells are known have a plan.
#pragma once

#include <algorithm>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "schedules/messages/channels.h"
#include "schedules/messages/messages.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/op_index.h"

namespace stagewright {

// How lists run beside their order. boundary: message bytes by stage, as boundaryOf() has them (empty: 0).
// gradientBuckets: schedules/execute/place_buckets.h. What both refer to must outlive the rules.
struct StepRules {
    Links links = {};
    Channels channels = {};
    std::span<const Bytes> boundary = {};
    std::span<const int> gradientBuckets = {};
};

// Sends, receives, collectives of a stage that is on several ranks, or ops of a resource beside compute.
bool hasMessagesOrMeetings(const Schedule& schedule);
// How collectives of lists without durations run: beside compute where they gather, or where replicas reduce.
Links untimedLinks(const Schedule& schedule);

// whole · (parts − 1) / parts, rounded down once.
constexpr Nanos allButOnePart(Nanos whole, int parts) { return whole - (whole + parts - 1) / parts; }
// From when an op that takes `duration` can step through with the gradients of a reduction from `begin` to `end`, which
// brings them in so many buckets of one size.
constexpr Nanos gradientsArrive(Nanos begin, Nanos end, Nanos duration, int buckets)
{
    return end - allButOnePart(std::min(end - begin, duration), buckets);
}

// What an op needs that its rank has not made before it.
struct StepInput {
    std::uint32_t source = noOp; // an op, or a message of the lists; noOp: never there
    bool message = false;
    Nanos delay = 0;             // from the op's end on
    std::uint32_t flight = noOp; // what brings it where messages of compute-only lists share a link
};

class StepPlan {
public:
    // A send and a receive of the lists.
    struct Message {
        MessagePair pair;
        Transit transit;
        std::uint32_t link = 0;
    };
    // A message of compute-only lists that shares its link with others.
    struct Flight {
        std::uint32_t link = 0;
        Transit transit;
    };

    // Schedule and index must outlive it. O(ops).
    StepPlan(const Schedule& schedule, const OpIndex& index, StepRules rules);

    const Schedule& schedule() const { return m_schedule; }
    const OpIndex& index() const { return m_index; }
    const StepRules& rules() const { return m_rules; }
    const Op& op(std::uint32_t id) const;
    bool collectivesBeside() const { return m_rules.links.collectives != ResourceUse::Compute; }
    int bucketsOf(const Op& optimizer, int rank) const; // 1: it waits for the whole reduction

    std::span<const StepInput> inputsOf(std::uint32_t op) const
    {
        return std::span(m_inputs).subspan(m_firstInput[op], m_firstInput[op + 1] - m_firstInput[op]);
    }
    std::span<const Message> messages() const { return m_messages; }
    std::uint32_t messageOf(std::uint32_t op) const { return m_pairs.messageOf(op); } // of a send or receive
    std::size_t linkCount() const { return m_linkOfRanks.size(); }
    std::pair<int, int> ranksOf(std::uint32_t link) const { return m_linkEnds[link]; } // from, to
    // Those that leave at the op's end, in the order in which they take their links.
    std::span<const Flight> flights() const { return m_flights; }
    std::pair<std::uint32_t, std::uint32_t> flightsOf(std::uint32_t op) const
    {
        return m_firstFlight.empty() ? std::pair(0U, 0U) : std::pair(m_firstFlight[op], m_firstFlight[op + 1]);
    }
    // The collectives that start together with this one, itself among them; empty: it meets none.
    std::span<const std::uint32_t> meetingOf(std::uint32_t collective) const
    {
        const auto at = m_meetingOf.find(collective);
        return at == m_meetingOf.end() ? std::span<const std::uint32_t>() : m_meetings[at->second];
    }
    bool ranksMeet() const; // any meeting of several ranks

private:
    void addMessages();
    void addInputs();
    void addDelays();
    void addFlights();
    void addMeetings();
    std::uint32_t linkOf(int from, int to);

    const Schedule& m_schedule;
    const OpIndex& m_index;
    StepRules m_rules;
    MessageIndex m_pairs;
    std::vector<Message> m_messages;
    std::vector<std::uint32_t> m_firstInput; // by op
    std::vector<StepInput> m_inputs;
    std::vector<std::uint32_t> m_firstFlight; // by op; empty: messages don't share links
    std::vector<Flight> m_flights;
    std::unordered_map<std::uint64_t, std::uint32_t> m_linkOfRanks; // by (from, to)
    std::vector<std::pair<int, int>> m_linkEnds;
    std::vector<std::vector<std::uint32_t>> m_meetings;
    std::unordered_map<std::uint32_t, std::uint32_t> m_meetingOf;
    std::vector<char> m_stepsOnArrival; // by rank; empty: none does
};

} // namespace stagewright
