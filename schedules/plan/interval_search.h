// Within an interval of time the orders of all ranks are left open, the rest of a given order stays as it is; branching finds a shorter
// one or shows that there is none. Internal to schedules/plan.
#pragma once

#include <cstdint>
#include <functional>

#include "schedules/plan/greedy.h"
#include "schedules/plan/random.h"
#include "schedules/plan/relaxation.h"

namespace stagewright::planning {

struct IntervalLimits
{
    std::int64_t work = 10'000'000; // as branch() counts it
    Nanos enough = 0;               // stops at this objective: a lower bound
    Nanos grid = 1;                 // objectives are multiples of it
    std::function<bool()> stop;     // may be empty
};

// How long intervals are follows from what branching did with the last ones, and is kept between calls.
class IntervalSearch
{
public:
    // Both must outlive it; the relaxation must be usable.
    IntervalSearch(const Pipeline& pipeline, RankRelaxation& relaxation, std::uint64_t seed);

    // Never worse than start. Same calls, same results unless stop fires.
    Found improve(const Found& start, const IntervalLimits& limits);
    std::int64_t tries() const { return m_tries; } // intervals looked at
    std::int64_t nodes() const { return m_nodes; }
    std::int64_t work() const { return m_work; }

private:
    bool follow(const Found& order);
    Windows windowsWithin(Nanos from, Nanos to, Nanos target) const;
    std::vector<Nanos> latestEnds(Nanos target) const;

    const Pipeline& m_pipeline;
    RankRelaxation& m_relaxation;
    Random m_random;
    double m_length = 0; // of an interval, in ns
    std::vector<std::vector<int>> m_path;     // by rank: the order's states
    struct Pass
    {
        Nanos start = 0;
        Nanos end = 0;
        int rank = 0;
        Letter letter = 0;
        int place = 0;      // among the rank's letters
        int microbatch = 0; // forwards and gradients: which
    };
    std::vector<Pass> m_passes; // of the order, by start
    std::int64_t m_tries = 0;
    std::int64_t m_nodes = 0;
    std::int64_t m_work = 0;
};

} // namespace stagewright::planning
