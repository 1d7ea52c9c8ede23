// Runs words: times them, and puts the weight gradients where they cost nothing. Given the order of F and I on every
// rank, W's go into the waits before them; the search then only has to order F and I. Internal to schedules/plan.
#pragma once

#include <vector>

#include "schedules/heuristic/pipeline.h"

namespace stagewright::planning {

// When a rank waits for less time than a W takes.
struct FillRule {
    double partial = 2;   // the W is run if the wait is at least this part of it; above 1: never
    bool balance = false; // not run where the rank has been idle for less than the idlest one by more than the wait
};

struct Timing {
    bool feasible = false; // false: the words wait for each other, or a cap can't be kept
    Nanos objective = 0;   // largest end − origin
    Nanos makespan = 0;
    Nanos span = 0;
    std::vector<Nanos> end;  // by rank
    std::vector<Bytes> peak; // by rank
};

// Buffers are kept between calls; one thread at a time. run() is O(letters).
class WordRunner {
public:
    explicit WordRunner(const Pipeline& pipeline);

    // Times words that hold every letter. Caps count: a word over its rank's cap is infeasible.
    const Timing& time(const Words& words);
    // words: F, I and B only. A W goes before the next letter where memory asks for it, where it fits into the wait, or
    // by the rule; the rest at the end. Where memory asks and no W is pending, the next I or B is taken first, and B
    // for an I that doesn't fit. filled() has the outcome.
    const Timing& fill(const Words& words, const FillRule& rule);
    // The order of the last run, W's included.
    const Words& filled() const { return m_out; }
    // Start of every letter of filled(), by rank.
    const std::vector<std::vector<Nanos>>& starts() const { return m_starts; }
    // One path of passes of the last run, each waiting for the one before, to the end that the objective is: rank and
    // place among the rank's letters other than W. Precondition: it was feasible.
    struct Place {
        int rank = 0;
        int letter = 0;
    };
    void criticalPath(std::vector<Place>& out) const;

private:
    struct Rank {
        Nanos clock = 0;
        Nanos idle = 0;
        Nanos first = -1;
        Bytes held = 0;
        Bytes peak = 0;
        std::size_t head = 0;
        int forwards[2] = {};        // done, by chunk
        int gradients[2] = {};       // I's and B's
        int apart[2] = {};           // I's whose W is not done
        std::vector<int> pending;    // fill(): chunks whose W waits, oldest first
        std::vector<int> apartOf[2]; // where microbatches differ: those that went back by I, by chunk
        int weights[2] = {};         // likewise: W's that are done
        std::size_t pendingHead = 0;
        bool blocked = false; // by memory, for good
    };

    void reset(const Words& words);
    const Timing& finish(const Words& words);
    bool advance(int r, const Words& words, const FillRule* rule); // as far as it goes; true: something was done
    Nanos arrival(int r, Letter letter) const;                     // of the letter's next pass; < 0: unknown yet
    void perform(int r, Letter letter, Nanos start);
    bool hasPending(const Rank& rank) const { return rank.pendingHead < rank.pending.size(); }
    Letter nextPending(Rank& rank) const { return letterOf(PassKind::WeightGrad, rank.pending[rank.pendingHead]); }
    bool fits(int r, Letter letter) const;
    int microbatchOf(const Rank& rank, Letter letter) const; // of the letter's next pass; where microbatches differ
    OwnPass passOf(int r, Letter letter) const;              // the letter's next
    bool makeRoom(int r);                                    // true: the next letter fits now, or a W was run

    const Pipeline& m_pipeline;
    std::vector<Rank> m_ranks;
    std::vector<Nanos> m_end[2]; // of F and I, by stage × microbatch; < 0: not yet
    std::vector<int> m_at[2];    // likewise the place in filled()
    Words m_out;
    Words m_rest; // the words being run, where letters may change places
    std::vector<std::vector<Nanos>> m_starts;
    Timing m_timing;
};

} // namespace stagewright::planning
