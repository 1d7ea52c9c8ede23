// The rank relaxation: all other ranks are replaced by time windows. Internal to schedules/plan.
//
// Every pass has an earliest start and a latest end for a target X. On one rank, with microbatches in rising order, a state is a
// handful of counts, and the earliest time at which a set of passes can be complete decides everything later (a later start is never
// better). So the rank alone is solved exactly, memory included, by dynamic programming over counts, forwards and backwards;
// states and passes that can't lie on any path in time are dropped and move their windows, windows move those of the neighbours,
// until nothing moves. A rank without a path refutes X: the optimum is above X.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "schedules/plan/pipeline.h"

namespace stagewright::planning {

// What is left of a target's orders: windows of the passes, states of the ranks. A copy is a branch.
struct Windows
{
    std::vector<Nanos> head[3];          // earliest start, by kind, then stage × microbatch
    std::vector<Nanos> due[3];           // latest end
    std::vector<std::vector<int>> alive; // by rank: states on some path in time, rising
    std::vector<std::uint8_t> dirty;     // by rank: its windows or states moved since it was solved
};

// Buffers are kept between calls; one thread at a time.
class RankRelaxation
{
public:
    // Counts of passes done, as one state of a rank; states are numbered, 0 is empty, last is complete.
    explicit RankRelaxation(const Pipeline& pipeline, std::size_t mostStates = 600'000);
    bool usable() const { return m_usable; } // false: more than mostStates, or a rank can't finish at all
    std::size_t stateCount() const;          // of all ranks

    // True: no order has an objective ≤ target. stop may be empty; where it fires the answer is false.
    bool refutes(Nanos target, const std::function<bool()>& stop = {});

    Windows windowsFor(Nanos target) const;                                      // nothing dropped yet
    bool propagate(Windows& windows, const std::function<bool()>& stop = {});    // false: a rank has no path left
    // Passes of the letter done in a state.
    int done(int rank, int state, Letter letter) const
    {
        return m_ranks[static_cast<std::size_t>(rank)].ordinal[static_cast<std::size_t>(state) * letterCount + letter];
    }
    std::size_t cell(int stage, int microbatch) const
    {
        return static_cast<std::size_t>(stage) * static_cast<std::size_t>(m_pipeline.microbatches) + static_cast<std::size_t>(microbatch);
    }

private:
    struct RankStates
    {
        std::vector<int> next;              // by state × letter; −1: the cap or the order forbids it
        std::vector<std::uint16_t> ordinal; // by state × letter: microbatch of the next pass of the letter
        std::vector<Nanos> earliest;        // never: dropped
        std::vector<Nanos> latest;
        int last = 0;
    };
    bool number(int rank, std::size_t most);
    void spreadHeads(Windows& windows) const;
    void spreadDues(Windows& windows) const;
    bool solve(int rank, Windows& windows, bool& moved); // false: no path

    const Pipeline& m_pipeline;
    bool m_usable = true;
    std::vector<RankStates> m_ranks;
};

} // namespace stagewright::planning
