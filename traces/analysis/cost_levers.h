// The levers that change costs alone: which there are for a run, and what each changes. What it gains is simulated by
// levers.h.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "traces/analysis/levers.h"

namespace stagewright {

struct CostLever {
    LeverKind kind = LeverKind::Rank;
    std::string name, title;
    // Changes costs like the subject's; points into the subject, which lives longer. Empty: `reason` says why it is
    // unknown.
    std::function<void(CostModel&)> change = {};
    std::string reason = {};
    std::vector<int> layers = {}; // by stage, of a lever that divides them otherwise
};

// Slow ranks, replicas and links, uneven stages, collectives, buckets, launch delays, jitter, long microbatches; of each
// kind the most that gets a row of its own.
std::vector<CostLever> costLeversOf(const LeverSubject& subject);

// Its compute ops take `factor` times as long.
void scaleRank(CostModel& costs, const Schedule& schedule, int rank, double factor);

} // namespace stagewright
