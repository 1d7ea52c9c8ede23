// Lower bounds on the objective of a Pipeline, valid for every order that keeps the caps. Internal to schedules/plan.
//
// Window bound. On rank r no I can start before turn(r's last stage in the chain), so before that moment only F's run, and of them at
// most what the cap holds; after the rank's last I only its W's are left, again at most what the cap holds, while the gradient
// still has to travel to stage 0. What cannot run in those windows must run between them.
//
// Round trip. With room for k microbatches on a rank, microbatch j + k can't start there before microbatch j has gone down, come
// back and been freed.
//
// Rank relaxation. All other ranks are replaced by time windows: every pass has an earliest start and a latest end for a target X.
// On one rank, with microbatches in rising order, a state is a handful of counts, and the earliest time at which a set of passes can be
// complete decides everything later (a later start is never better). So the rank alone is solved exactly, memory included, by
// dynamic programming over counts, forwards and backwards; passes that can't lie on any feasible path move their windows, windows
// move those of the neighbours, until nothing moves. A rank without a path refutes X: the optimum is above X.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "schedules/plan/pipeline.h"

namespace stagewright::planning {

struct Bound
{
    Nanos value = 0;
    std::string by; // "work of rank 3", "window of rank 0", "round trip of rank 0", "relaxation of single ranks"
};

// O(stages²).
Bound windowBound(const Pipeline& pipeline);

// The windows of the rank relaxation for one target.
class RankRelaxation
{
public:
    // Counts of passes done, as one state of a rank; states are numbered, 0 is empty, last is complete.
    explicit RankRelaxation(const Pipeline& pipeline, std::size_t mostStates = 400'000);
    bool usable() const { return m_usable; } // false: more than mostStates, or a rank can't finish at all

    // True: no order has an objective ≤ target. stop may be empty; where it fires the answer is false.
    bool refutes(Nanos target, const std::function<bool()>& stop = {});

    // After refutes(target) == false: what the search asks. State −1 means that the cap or the order forbids it.
    int startState() const { return 0; }
    int next(int rank, int state, Letter letter) const
    {
        return m_ranks[static_cast<std::size_t>(rank)].next[static_cast<std::size_t>(state) * letterCount + letter];
    }
    // Latest time at which the rank may be in the state and still finish in time; < 0: dead.
    Nanos latest(int rank, int state) const { return m_ranks[static_cast<std::size_t>(rank)].latest[static_cast<std::size_t>(state)]; }
    Nanos latestEnd(PassKind kind, int stage, int microbatch) const
    {
        return m_due[static_cast<std::size_t>(kind)][cell(stage, microbatch)];
    }
    Nanos earliestStart(PassKind kind, int stage, int microbatch) const
    {
        return m_head[static_cast<std::size_t>(kind)][cell(stage, microbatch)];
    }

private:
    struct RankStates
    {
        std::vector<int> next;              // by state × letter
        std::vector<std::uint16_t> ordinal; // by state × letter: microbatch of the next pass of the letter
        std::vector<Nanos> earliest;
        std::vector<Nanos> latest;
        int last = 0;
    };
    std::size_t cell(int stage, int microbatch) const
    {
        return static_cast<std::size_t>(stage) * static_cast<std::size_t>(m_pipeline.microbatches) + static_cast<std::size_t>(microbatch);
    }
    bool number(int rank, std::size_t most);
    void spreadHeads();
    void spreadDues();
    bool tighten(int rank, bool& moved); // false: no path

    const Pipeline& m_pipeline;
    bool m_usable = true;
    std::vector<RankStates> m_ranks;
    std::vector<Nanos> m_head[3]; // earliest start, by kind, then stage × microbatch
    std::vector<Nanos> m_due[3];  // latest end
};

// The better of both: the smallest target that the relaxation can't refute, on the grid of the durations' common divisor, between
// the window bound and `best` (an objective that is reached). stop ends it early with what is proven so far.
Bound provenBound(const Pipeline& pipeline, RankRelaxation& relaxation, Nanos best, const std::function<bool()>& stop = {});

// The largest number that divides every duration, delay and origin: objectives are multiples of it. At least 1.
Nanos gridOf(const Pipeline& pipeline);

} // namespace stagewright::planning
