// The rank relaxation: all other ranks are replaced by time windows. Internal to schedules/plan.
//
// Every pass has an earliest start and a latest end for a target X. On one rank, with microbatches in rising order, a
// state is a handful of counts (forwards, gradients, microbatches released), and the earliest time at which a set of
// passes can be complete decides everything later (a later start is never better). So the rank alone is solved exactly,
// memory included, by dynamic programming over counts, forwards and backwards; states and passes that can't lie on any
// path in time are dropped and move their windows, windows move those of the neighbours, until nothing moves. A rank
// without a path refutes X: the optimum is above X. A full backward makes a gradient and releases a microbatch at once;
// where it can't do better than I and W (Pipeline::full) it is left out.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "schedules/heuristic/pipeline.h"

namespace stagewright::planning {

inline constexpr Nanos never = INT64_MAX / 4; // a time that is not known, or none

// What a state counts, by chunk. An event is the end of a pass: of F; of I or B; of W or B.
inline constexpr int eventCount = 6;
inline constexpr std::size_t forwardEvent = 0;
inline constexpr std::size_t gradientEvent = 1;
inline constexpr std::size_t releaseEvent = 2;

using Counts = std::array<std::uint16_t, eventCount>; // 2 · event + chunk

// What is left of a target's orders: windows of the events, states of the ranks. A copy is a branch.
struct Windows {
    static constexpr std::uint8_t apart = 1;
    static constexpr std::uint8_t atOnce = 2;

    std::vector<Nanos> head[3];          // earliest start of the event's pass, by event, then stage × microbatch
    std::vector<Nanos> due[3];           // latest end
    std::vector<Nanos> soon;             // earliest end of the gradient's pass, by stage × microbatch
    std::vector<Nanos> late;             // latest start of it
    std::vector<std::uint8_t> ways;      // apart (I), atOnce (B) or both
    std::vector<std::vector<int>> alive; // by rank: states on some path in time, rising
    std::vector<int> first;              // by rank: the state that all paths start with
    std::vector<int> last;
    std::vector<Nanos> begin; // by rank: the first state is reached then at the earliest
    std::vector<Nanos> end;   // and the last one at the latest
    // by rank, then events done: paths have a state there, no B leads over it
    std::vector<std::vector<std::uint8_t>> stops;
    std::vector<std::uint8_t> dirty; // by rank: its windows or states moved since it was solved
};

// Buffers are kept between calls; one thread at a time.
class RankRelaxation {
public:
    // Counts of passes done, as one state of a rank; states are numbered, 0 is empty, last is complete.
    explicit RankRelaxation(const Pipeline& pipeline, std::size_t mostStates = defaultMostStates,
                            const std::function<bool()>& stop = {});
    // Only from some counts to others, by rank; what is held at the first ones is what they say. States are numbered
    // likewise.
    RankRelaxation(const Pipeline& pipeline, const std::vector<Counts>& from, const std::vector<Counts>& to,
                   std::size_t mostStates);
    static constexpr std::size_t defaultMostStates = 3'000'000; // about 64 bytes each
    // false: more than mostStates or 1,000 microbatches, or stop fired
    bool usable() const { return m_usable; }
    std::size_t stateCount() const; // of all ranks

    // True: no order has an objective ≤ target. stop may be empty; where it fires the answer is false.
    bool refutes(Nanos target, const std::function<bool()>& stop = {});

    Windows windowsFor(Nanos target) const;                                   // nothing dropped yet
    void lower(Windows& windows, Nanos target) const;                         // to a smaller target
    bool propagate(Windows& windows, const std::function<bool()>& stop = {}); // false: a rank has no path left
    std::size_t stateCount(int rank) const { return m_ranks[static_cast<std::size_t>(rank)].earliest.size(); }
    // From the start of forward k of stage 0 on, rest[k] is needed at least. From now on it counts in windowsFor() and
    // lower().
    void limitStarts(std::vector<Nanos> rest) { m_rest = std::move(rest); }
    std::int64_t looked() const { return m_looked; } // at so many states since the beginning
    // Events done in a state; event: 2 · forwardEvent … + chunk.
    int done(int rank, int state, int event) const
    {
        return m_ranks[static_cast<std::size_t>(rank)]
            .ordinal[static_cast<std::size_t>(state) * eventCount + static_cast<std::size_t>(event)];
    }
    int doneInAll(int rank, int state) const;
    // The state that a letter leads to; −1: none.
    int next(int rank, int state, Letter letter) const
    {
        return m_ranks[static_cast<std::size_t>(rank)].next[static_cast<std::size_t>(state) * letterCount + letter];
    }
    // The least time of the pass that makes an event.
    Nanos least(std::size_t event, int stage) const;
    std::size_t cell(int stage, int microbatch) const
    {
        return static_cast<std::size_t>(stage) * static_cast<std::size_t>(m_pipeline.microbatches) +
               static_cast<std::size_t>(microbatch);
    }

private:
    struct RankStates {
        std::vector<int> next;              // by state × letter; −1: the cap or the order forbids it
        std::vector<std::uint16_t> ordinal; // by state × event: how many there were
        std::vector<Nanos> earliest;        // never: dropped
        std::vector<Nanos> latest;          // longAgo but for the states that solve() looks at
        int last = 0;
    };
    bool number(int rank, const Counts& from, const Counts& to, std::size_t most, const std::function<bool()>& stop);
    Nanos gradientTime(const Windows& windows, int stage, int microbatch) const;
    void spreadHeads(Windows& windows) const;
    void spreadDues(Windows& windows) const;
    struct Step;
    std::vector<Step> stepsOf(int rank) const;
    bool solve(int rank, Windows& windows, bool& moved); // false: no path

    const Pipeline& m_pipeline;
    bool m_usable = true;
    std::int64_t m_looked = 0;
    std::vector<Nanos> m_rest; // by microbatch; may be empty
    std::vector<RankStates> m_ranks;
};

} // namespace stagewright::planning
