// MessageExecution: list execution where messages matter. It runs lowered lists under any Channels, and compute-only
// lists in which copies of a stage meet at REDUCE_GRAD and UNSHARD; place() runs all others faster. It also says why
// lists can't end. Internal to schedules. O(ops).
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "schedules/messages/channels.h"
#include "schedules/messages/communication_streams.h"
#include "schedules/messages/link_lane.h"
#include "schedules/messages/message_delay.h"
#include "schedules/messages/messages.h"
#include "schedules/messages/sim_result.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/op_index.h"

namespace stagewright {

// lowered, or copies that reduce their gradients or gather their weights
bool needsMessageExecution(const Schedule& schedule);

class MessageExecution {
public:
    // durations may be empty: nothing takes time, and gathers are beside compute.
    MessageExecution(const Schedule& schedule, const OpIndex& index, const Channels& channels,
                     std::span<const Nanos> durations = {}, const Links& links = {},
                     std::span<const Bytes> boundary = {});

    void stepInBuckets(std::span<const int> gradientBuckets); // before run(); schedules/execute/place_buckets.h
    bool run(PlacePolicy policy = PlacePolicy::Strict);       // whether every list ended; relaxed: always
    const SimResult& result() const { return m_out; }         // makespan and span not filled
    Nanos clockOf(int rank) const { return m_clock[static_cast<std::size_t>(rank)]; }
    std::size_t done() const; // ops that ran

    // After run() returned false: the op at which a rank is blocked and the op of another rank that it waits for;
    // several where it waits for more than one. awaited is noOp where nothing in the lists would help (a missing or
    // later op of the same rank).
    struct Obstacle {
        std::uint32_t op = noOp;
        std::uint32_t awaited = noOp;
    };
    std::vector<Obstacle> obstacles(int rank) const; // empty: the rank's list ended

private:
    struct Input {
        std::uint32_t source = noOp; // an op, or a message; noOp: never there
        bool message = false;
        Nanos delay = 0;
        std::uint32_t flight = noOp; // what brings it where messages of compute-only lists share a link
    };
    struct Channel {
        std::vector<std::uint32_t> queue; // messages in the order of their sends
        std::size_t next = 0;             // the first that is not in flight
        LinkLane lane;
    };
    // A message of compute-only lists that shares its link with others.
    struct Flight {
        std::uint32_t lane = 0;
        Transit transit;
        Nanos arrival = -1;
    };

    void prepareInputs();
    void prepareMessages(const Links& links, std::span<const Bytes> boundary);
    void prepareFlights(const Links& links, std::span<const Bytes> boundary);
    std::uint32_t channelFor(int from, int to);
    void prepareReductions();
    std::span<const Input> inputsOf(std::uint32_t op) const;
    void runRank(int rank);
    bool isThere(const Input& input) const;
    bool inputsThere(std::uint32_t op, int rank, Nanos& begin) const;
    bool reductionThere(std::uint32_t op, int rank, Nanos now, Nanos& begin);
    void issueBeside(std::uint32_t op, int rank, Nanos now);
    // whether all of its ranks have now
    bool comeTo(std::uint32_t collective, int rank, Nanos now);
    void takeLanes(std::uint32_t collective);                                        // once they have
    std::span<const std::uint32_t> membersOf(const std::uint32_t& collective) const; // itself where it is one rank's
    Nanos runOps(std::uint32_t op, int rank, Nanos begin);                           // it, or its pair; their end
    void awaitInputs(std::uint32_t op, int rank, std::size_t count);
    void tellWaiting(int rank);
    bool lanesAreShared() const; // by collectives of several ranks: then runInTime()
    void runInTime();
    template <typename Visit>
    void eachCollectiveFor(const Op& op, int rank, Visit&& visit) const; // that the op waits for, beside compute
    bool runMessages(int rank, std::size_t position, std::size_t count, Nanos& now);
    Nanos availableAt(std::uint32_t collective, const Op& op, int rank, Nanos duration) const;
    bool messageEnd(const Op& op, std::uint32_t message, Nanos& end) const;
    // whether the message now has both sides in the lists, for the first time
    bool post(const Op& op, std::uint32_t id, Nanos now);
    void advance(Channel& channel);
    void advanceStream(int rank);
    Nanos start(std::uint32_t message, Nanos ready);
    void addHeldBack(int rank, std::uint32_t op, std::uint32_t message, std::vector<Obstacle>& out) const;
    void fly(std::uint32_t op);
    void wake(int rank);

    const Schedule& m_schedule;
    const OpIndex& m_index;
    Channels m_channels;
    std::span<const Nanos> m_durations;
    MessageIndex m_pairs;
    SimResult m_out;
    std::vector<std::uint32_t> m_inputOffsets;
    std::vector<Input> m_inputs;
    std::vector<Transit> m_transit;         // by message
    std::vector<std::uint32_t> m_channelOf; // by message
    std::vector<Channel> m_channelList;
    std::unordered_map<std::uint64_t, std::uint32_t> m_channelOfRanks; // by (from, to)
    std::optional<CommunicationStreams> m_streams;                     // one a rank
    std::vector<CommunicationStreams::Side> m_posted;                  // at once
    std::vector<Flight> m_flights;                                     // by producer
    std::vector<std::uint32_t> m_flightOffsets;                        // by op; empty: messages don't share links
    std::vector<std::vector<std::uint32_t>> m_meetings;                // REDUCE_GRAD ops that start together
    std::unordered_map<std::uint32_t, std::uint32_t> m_meetingOf;
    std::unordered_map<std::uint32_t, Nanos> m_met; // REDUCE_GRAD op: when its rank came to it
    Links m_links;
    // Collectives beside compute, by rank; empty: they run on the compute lane.
    struct Beside {
        Nanos lane = 0;                      // until when it is taken
        std::vector<std::uint32_t> gathered; // by stage: the newest gather and reduction issued; noOp: none
        std::vector<std::uint32_t> reduced;
    };
    std::vector<Beside> m_beside;
    std::span<const int> m_gradientBuckets; // by stage
    std::vector<char> m_stepsOnArrival;     // by rank; empty: none does
    std::vector<Nanos> m_leaves;            // by op: when its messages can leave; empty: at its end
    std::vector<std::size_t> m_head;
    std::vector<Nanos> m_clock;
    std::vector<std::vector<int>> m_waiting; // ranks that wait for an op of a rank
    std::vector<char> m_queued;
    std::vector<int> m_runnable;
    int m_forced = -1; // relaxed: the rank whose next op starts without what is missing
};

} // namespace stagewright
