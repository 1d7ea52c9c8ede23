// Orders by list scheduling for stages anywhere: a free rank takes what has come, gradients before forwards, weight
// gradients where nothing else is there. With enough microbatches a rank then seldom waits once it has started. Internal
// to schedules.
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/base/units.h"
#include "schedules/model/schedule.h"

namespace stagewright::planning {

struct StageTimes { // of one microbatch
    Nanos forward = 0, input = 0, weight = 0;
    Nanos message = 0; // to the next stage, and its gradient back
};

struct ListRule {
    int open = 0;             // most microbatches between F and I of a stage; 0: any number
    bool laterForward = true; // of a rank's stages the last one's F first, else the first one's
};

// Buffers are kept between calls; one thread at a time.
class ListOrder {
public:
    static constexpr Nanos never = INT64_MAX / 4;

    // Precondition: each stage is on one rank.
    ListOrder(const Placement& placement, int ranks, int microbatches);

    // The makespan, as long as messages don't queue on a link; never: it is `limit` or more, or the rule gets stuck.
    // O(ops × stages of a rank).
    Nanos run(const std::vector<StageTimes>& stages, const ListRule& rule, Nanos limit = never);
    // The order of the last run, which must have ended.
    Schedule schedule() const;
    std::int64_t ops() const { return m_ops; } // that all runs have placed

private:
    struct Rank {
        std::vector<int> stages;
        Nanos clock = 0;
        Nanos next = never; // when `op` would start
        Op op = {};
        std::vector<Op> order;
    };
    struct Stage {
        int rank = 0;
        int forwards = 0, gradients = 0, weights = 0; // that have started
        std::vector<Nanos> forwardEnds, gradientEnds;
    };
    Stage& at(int stage) { return m_stages[static_cast<std::size_t>(stage)]; }
    Nanos forwardArrival(int stage);
    Nanos gradientArrival(int stage);
    void choose(int rank);

    Placement m_placement;
    int m_microbatches;
    std::vector<Rank> m_ranks;
    std::vector<Stage> m_stages;
    const std::vector<StageTimes>* m_times = nullptr;
    ListRule m_rule;
    std::int64_t m_ops = 0;
};

} // namespace stagewright::planning
