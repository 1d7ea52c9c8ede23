// Within an interval of time the orders of all ranks are left open, the rest of a given order stays as it is; branching
// finds a shorter one or shows that there is none. Internal to schedules/plan.
#pragma once

#include <cstdint>
#include <functional>

#include "schedules/heuristic/greedy.h"
#include "schedules/heuristic/random.h"
#include "schedules/plan/relaxation.h"

namespace stagewright::planning {

struct IntervalLimits {
    std::int64_t work = 10'000'000; // as branch() counts it
    Nanos enough = 0;               // stops at this objective: a lower bound
    Nanos grid = 1;                 // objectives are multiples of it
    std::function<bool()> stop;     // may be empty
};

// How long intervals are follows from what branching did with the last ones, and is kept between calls.
class IntervalSearch {
public:
    // The pipeline must outlive it.
    IntervalSearch(const Pipeline& pipeline, std::uint64_t seed);

    // Never worse than start. Same calls, same results unless stop fires.
    Found improve(const Found& start, const IntervalLimits& limits);
    std::int64_t tries() const { return m_tries; } // intervals looked at
    std::int64_t nodes() const { return m_nodes; }
    std::int64_t work() const { return m_work; }

private:
    bool follow(const Found& order);
    std::vector<std::size_t> placesAt(Nanos time) const;
    Windows windowsWithin(const RankRelaxation& relaxation, Nanos from, Nanos to, Nanos target) const;
    Found searchAt(const Found& best, Nanos from, const IntervalLimits& limits);
    std::vector<Nanos> latestEnds(Nanos target) const;

    const Pipeline& m_pipeline;
    Random m_random;
    double m_length = 0;                     // of an interval, in ns
    std::vector<std::vector<Counts>> m_path; // by rank: events done before each letter of the order, and after the last
    struct Pass {
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
