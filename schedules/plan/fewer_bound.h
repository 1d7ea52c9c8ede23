// Proofs for few microbatches in the bound for many. Internal to schedules/plan.
//
// In any order of m microbatches leave out the first k: what is left is an order of m − k that starts when forward k of
// stage 0 does, since leaving out passes never adds to what a rank holds. So that forward starts at least objective(m −
// k) before the end. Branching proves few microbatches where it gets lost in many, and each number helps with the
// larger ones.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "schedules/plan/relaxation.h"

namespace stagewright::planning {

class FewerBound {
public:
    // The pipeline must outlive it.
    explicit FewerBound(const Pipeline& pipeline);

    // Goes on with each proof for about `work`, as branch() counts it. best: an objective that is reached, for the size
    // of steps. The same calls, the same result unless stop fires.
    void prove(std::int64_t work, Nanos best, const std::function<bool()>& stop);
    Nanos objectiveOf(int microbatches) const; // no order of so many has a smaller one; 0: none
    // By microbatch: what is needed from its first forward's start on; for RankRelaxation::limitStarts().
    std::vector<Nanos> restsOf(int microbatches) const;
    std::int64_t nodes() const { return m_nodes; }

private:
    struct Part {
        Part(const Pipeline& all, int microbatches);
        Pipeline pipeline;
        std::unique_ptr<RankRelaxation> relaxation; // made when needed
        Nanos low = 0;
        Nanos reached = INT64_MAX / 4; // the smallest target with a known order
        Nanos step = 0;
    };
    void prove(Part& part, std::int64_t work, Nanos best, const std::function<bool()>& stop);

    const Pipeline& m_pipeline;
    Nanos m_grid = 1;
    std::vector<std::unique_ptr<Part>> m_parts; // by rising number; relaxations point to their pipelines
    std::int64_t m_nodes = 0;
};

} // namespace stagewright::planning
