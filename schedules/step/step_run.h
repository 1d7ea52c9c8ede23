// StepRun: runs a StepPlan. Lowered lists under any channels, and compute-only lists in which copies of a stage meet at
// REDUCE_GRAD and UNSHARD or messages share their links; PlainRun runs all others faster. It also says why lists can't
// end. O(ops).
#pragma once

#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "schedules/messages/communication_streams.h"
#include "schedules/messages/link_lane.h"
#include "schedules/messages/sim_result.h"
#include "schedules/step/step_plan.h"

namespace stagewright {

class StepRun {
public:
    // The plan must outlive it. durations, by op: they may be empty, nothing then takes time.
    explicit StepRun(const StepPlan& plan, std::span<const Nanos> durations = {});

    bool run(PlacePolicy policy = PlacePolicy::Strict);       // whether every list ended; relaxed: always
    std::span<const Nanos> clocks() const { return m_clock; } // by rank: when its last op ended
    SimResult take() { return std::move(m_out); }             // makespan and span not filled
    std::size_t done() const;                                 // ops that ran

    // After run() returned false: the op at which a rank is blocked and the op of another rank that it waits for;
    // several where it waits for more than one. awaited is noOp where nothing in the lists would help (a missing or
    // later op of the same rank).
    struct Obstacle {
        std::uint32_t op = noOp;
        std::uint32_t awaited = noOp;
    };
    std::vector<Obstacle> obstacles(int rank) const; // empty: the rank's list ended

private:
    struct LinkQueue {
        std::vector<std::uint32_t> messages; // in the order of their sends
        std::size_t next = 0;                // the first that is not in flight
        LinkLane lane;
    };
    void runRank(int rank);
    bool isThere(const StepInput& input) const;
    bool inputsThere(std::uint32_t op, int rank, Nanos& begin) const;
    bool reductionThere(std::uint32_t op, int rank, Nanos now, Nanos& begin);
    void issueBeside(std::uint32_t op, int rank, Nanos now);
    // whether all of its ranks have now
    bool comeTo(std::uint32_t collective, int rank, Nanos now);
    void takeLanes(std::uint32_t collective);                                        // once they have
    std::span<const std::uint32_t> membersOf(const std::uint32_t& collective) const; // itself where it meets none
    Nanos runOps(std::uint32_t op, int rank, Nanos begin);                           // it, or its pair; their end
    Nanos runAny(std::uint32_t op, int rank, Nanos now, Nanos begin);                // until when the list is busy
    void awaitInputs(std::uint32_t op, int rank, std::size_t count);
    void tellWaiting(int rank);
    bool lanesAreShared() const; // by collectives or messages of several ranks: then runInTime()
    void runInTime();
    template <typename Visit>
    void eachCollectiveFor(const Op& op, int rank, Visit&& visit) const; // that the op waits for, beside compute
    bool runMessages(int rank, std::size_t position, std::size_t count, Nanos& now);
    Nanos availableAt(std::uint32_t collective, const Op& op, int rank, Nanos duration) const;
    bool messageEnd(const Op& op, std::uint32_t message, Nanos& end) const;
    // whether the message now has both sides in the lists, for the first time
    bool post(const Op& op, std::uint32_t id, Nanos now);
    void advance(LinkQueue& link);
    void advanceStream(int rank);
    Nanos start(std::uint32_t message, Nanos ready);
    Nanos takeLink(std::uint32_t link, Nanos ready, const Transit& transit);
    void addHeldBack(int rank, std::uint32_t op, std::uint32_t message, std::vector<Obstacle>& out) const;
    void fly(std::uint32_t op);
    void wake(int rank);

    const StepPlan& m_plan;
    const Schedule& m_schedule; // the plan's
    const OpIndex& m_index;
    const Channels& m_channels;
    std::span<const Nanos> m_durations;
    SimResult m_out;
    std::vector<LinkQueue> m_links;
    CardLanes m_cards;
    std::optional<CommunicationStreams> m_streams;    // one a rank
    std::vector<CommunicationStreams::Side> m_posted; // at once
    std::vector<Nanos> m_arrivals;                    // by flight; −1: it has not left
    std::unordered_map<std::uint32_t, Nanos> m_met;   // a collective that meets others: when its rank came to it
    // Collectives beside compute, by rank; empty: they run on the compute lane.
    struct Beside {
        Nanos lane = 0;                      // until when it is taken
        std::vector<std::uint32_t> gathered; // by stage: the newest gather and reduction issued; noOp: none
        std::vector<std::uint32_t> reduced;
    };
    std::vector<Beside> m_beside;
    std::map<std::pair<int, Resource>, Nanos> m_apart; // by rank and queue beside compute: until when it is taken
    std::vector<Nanos> m_leaves;                       // by op: when its messages can leave; empty: at its end
    std::vector<std::size_t> m_head;
    std::vector<Nanos> m_clock;
    std::vector<std::vector<int>> m_waiting; // ranks that wait for an op of a rank
    std::vector<char> m_queued;
    std::vector<int> m_runnable;
    int m_forced = -1; // relaxed: the rank whose next op starts without what is missing
};

} // namespace stagewright
