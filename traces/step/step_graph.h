// StepGraph: a step as a graph that can be replayed with other durations, transfers or orders. Analyses use it to
// compute "what would have been" from the recorded durations: causes, slack, experiments on gaps.
//
// A slot occupied a rank for one interval: an op, an overlapped pair, a delay, work apart. A slot starts at the
// latest of the end of the slot before it on its rank and the arrivals of its inputs, plus its own delay; the delay is
// the recorded remainder (launch; negative if clocks disagree). Replayed unchanged it reproduces the step to the
// nanosecond.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/step/slow_ranks.h"
#include "traces/step/step_ops.h"

namespace stagewright {

using SlotId = std::uint32_t;
inline constexpr SlotId noSlot = 0xffffffffu;

struct Slot {
    SpanId first = noSpan;
    SpanId second = noSpan; // of an overlapped pair
    int rank = 0;
    bool busy = false; // counts for the window
};

struct SlotInput {
    SlotId from = noSlot;
    SlotId to = noSlot;
};

// Inputs of a replay that may be changed; created by StepGraph::asItWas().
struct StepScenario {
    std::vector<Nanos> duration;            // by slot
    std::vector<Nanos> delay;               // by slot
    std::vector<Nanos> transfer;            // by input
    std::vector<std::vector<SlotId>> order; // by rank
};

struct StepReplay {
    std::vector<Nanos> start; // by slot
    std::vector<Nanos> end;
    Nanos makespan = 0; // from the first start to the last end of busy slots
};

struct StepLevels {
    std::vector<Nanos> median; // of slots of the same ops on the same stages and rank
    std::vector<Nanos> alike;  // as recorded, but ops of long microbatches with their median
    // by microbatch: it takes this many times as long as the others on every stage; 1: as they do, or unknown
    std::vector<double> longer;
    std::vector<Nanos> even;         // the medians with every rank as fast as the others (slow_ranks.h), if known
    std::vector<Nanos> mean;         // of those over stages and ranks
    std::vector<RankSlowness> ranks; // by rank
    bool slow(int rank) const        // the rank is, not its stages
    {
        const RankSlowness& of = ranks[static_cast<std::size_t>(rank)];
        return of.known && of.factor > slowRank;
    }
    double longerOf(int microbatch) const
    {
        return microbatch >= 0 && static_cast<std::size_t>(microbatch) < longer.size()
                   ? longer[static_cast<std::size_t>(microbatch)]
                   : 1;
    }
};

class StepGraph {
public:
    // Both must outlive it. O((spans + edges) log spans).
    StepGraph(const Timeline& timeline, const StepOps& ops);

    std::size_t size() const { return m_slots.size(); }
    const Slot& slot(SlotId id) const { return m_slots[id]; }
    SlotId slotOf(SpanId span) const;                                 // noSlot: not of this step's window
    const std::vector<SlotInput>& inputs() const { return m_inputs; } // by consumer: inputsOf() is a range of it
    std::pair<std::size_t, std::size_t> inputsOf(SlotId id) const { return {m_firstInput[id], m_firstInput[id + 1]}; }
    const StepInputs& stepInputs() const { return m_stepInputs; } // including those left out as clock errors
    SlotId before(SlotId id) const { return m_before[id]; }       // on its rank; noSlot: the first
    // What released it: the input that arrived last, or the previous slot on its rank if that ended later or at the
    // same time; noSlot: the start of the window.
    SlotId releasedBy(SlotId id) const;
    const StepScenario& asItWas() const { return m_scenario; }
    Nanos makespan() const { return m_makespan; }

    // Empty if the order has a cycle. O(slots + inputs).
    std::optional<StepReplay> run(const StepScenario& scenario) const;

    // Durations by slot without outliers. Slots that are not busy keep theirs.
    StepLevels levels() const;

    // By slot: how much later it could start without making the step longer, all else unchanged. ≥ 0.
    std::vector<Nanos> slack() const;

private:
    void sortSlots();
    std::vector<Nanos> medianDurations() const;
    std::vector<Nanos> meanDurations(const std::vector<Nanos>& medians) const;
    std::vector<RankSlowness> slowness(const std::vector<Nanos>& medians) const;
    std::vector<double> longMicrobatches(const std::vector<Nanos>& medians) const;
    std::vector<SlotId> topologicalOrder(const std::vector<std::vector<SlotId>>& order) const; // empty: a cycle

    const Timeline& m_timeline;
    std::vector<Slot> m_slots;
    struct Run { // of spans that follow each other
        SpanId first;
        SpanId count;
        std::size_t at; // in m_slotOfRun
    };
    std::vector<Run> m_runs; // by first span
    std::vector<SlotId> m_slotOfRun;
    StepInputs m_stepInputs;
    std::vector<std::uint32_t> m_place; // by slot: which of those with the same ops, stages and rank; of busy ones
    std::vector<std::uint32_t> m_sort;  // by place: which of those with the same ops
    std::uint32_t m_sorts = 0;
    std::vector<SlotInput> m_inputs;
    std::vector<std::size_t> m_firstInput;
    std::vector<SlotId> m_before;
    StepScenario m_scenario;
    std::vector<SlotId> m_order; // topological, of the recorded step
    Nanos m_begin = 0;
    Nanos m_makespan = 0;
};

} // namespace stagewright
