// PlainRun: runs lists without messages or meetings, ready times by cell and without a compiled plan. Each rank runs its
// list until an input is missing; it then waits in that input's cell and is woken by the op that fills it: every op is
// examined once, plus once for each time its rank was woken for it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "schedules/messages/link_lane.h"
#include "schedules/messages/sim_result.h"
#include "schedules/step/step_plan.h"

namespace stagewright {

class PlainRun {
public:
    // Whether it runs these lists as StepRun does.
    static bool serves(const Schedule& schedule, const CellSpace& cells, const StepRules& rules);

    // What it is given must outlive it. durations, by op: empty, nothing takes time and no times are kept.
    PlainRun(const Schedule& schedule, const CellSpace& cells, const StepRules& rules,
             std::span<const Nanos> durations = {});

    bool run();                // as far as the lists go: whether every list ended
    bool runForcing(int rank); // the same once more; the rank's next op starts without what is missing
    int waitingRank() const;   // the lowest; −1: every list ended
    std::span<const std::size_t> heads() const { return m_head; } // by rank: ops that ran
    std::span<const Nanos> clocks() const { return m_clock; }     // by rank: when the last of them ended
    bool collectivesBeside() const { return !m_beside.empty(); }
    SimResult take() { return std::move(m_out); } // makespan and span not filled

private:
    struct NeedPlan {
        std::int8_t product = 0;
        StageSide side = StageSide::Own;
    };
    struct KindPlan {
        std::uint8_t needCount = 0;
        std::int8_t product = -1; // −1: nobody can need it
        std::array<NeedPlan, 2> needs{};
    };
    // What a stage sends where messages share their links.
    struct Flight {
        bool leaves = false; // to another rank
        std::size_t lane = 0;
        Transit transit;
    };
    struct Beside {
        Nanos lane = 0;                   // until when it is taken
        std::vector<Nanos> gathered;      // by stage: when the newest gather ends
        std::vector<Nanos> reductionFrom; // by stage: when the newest reduction starts and ends
        std::vector<Nanos> reduced;
        bool steps = false; // on arrival: its list goes on behind an optimizer
    };

    void prepareFlights();
    Nanos delayOf(const Op& op, int stage, int rank) const;
    template <bool Plain>
    bool inputsReady(const Op& op, int rank, Nanos& begin);
    template <bool Plain>
    void publish(const Op& op, Nanos end, int rank);
    void waitForCollectives(const Op& op, int rank, Nanos duration, Nanos& begin) const;
    void runBeside(const Op& op, int rank, Nanos now, std::size_t id);
    template <bool Plain, bool Timed>
    void runRank(int rank);
    void wake(Nanos cell);
    void leaveLine(Nanos& cell, int rank);

    const Schedule& m_schedule;
    const StepRules& m_rules;
    std::span<const Nanos> m_durations;
    CellSpace m_cells;
    SimResult m_out;
    std::array<KindPlan, opKindRoom> m_plans;
    // By cell, the end of its producer; else < 0: −1, or −2 − the rank that waits first in line.
    std::array<std::vector<Nanos>, productCount> m_ready;
    std::array<std::vector<Nanos>, 2> m_delays; // by stage of the consumer; [0] from below, [1] from above
    bool m_uniformDelays =
        true; // false: links depend on the microbatch (copies) or messages on their op (counts, halves)
    // Where messages of plain lists share their links (a stage is on one rank there): [0] up and [1] down, by stage,
    // and when they arrive, by the cell of the producer. Empty: messages don't wait for each other.
    std::array<std::vector<Flight>, 2> m_flights;
    std::array<std::vector<Nanos>, 2> m_arrivals;
    std::vector<LinkLane> m_lanes;
    std::vector<std::size_t> m_head;
    std::vector<Nanos> m_clock;
    std::vector<int> m_nextWaiter;
    std::vector<int> m_runnable;
    int m_forced = -1;
    // Collectives beside compute, by rank; empty: none in the lists, or all on the compute lane.
    std::vector<Beside> m_beside;
    // by cell: when its message can leave; only where the link is shared
    std::array<std::vector<Nanos>, productCount> m_leaves;
};

} // namespace stagewright
