// A gap explained: one sentence with its cause and what would remove it, the chain of ops back to the root, and an
// experiment: the step replayed, from its own durations, with that one change.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/analysis/step_context.h"

namespace stagewright {

struct GapLink {
    SpanId span = noSpan;
    std::string why; // "0B0 waits for its gradient"; the last one says why the chain ends
};
using GapChain = std::vector<GapLink>; // from what the rank waited for, back to the root

struct GapExperiment {
    std::string change; // "if 1B0 on rank 1 ended 2 units earlier"
    Nanos before = 0;   // original makespan
    Nanos after = 0;    // makespan of the replayed step; the same if the gap has slack
};

struct GapExplanation {
    std::string sentence;
    GapChain chain;
    std::optional<GapExperiment> experiment; // empty: no single change would show more
};

// For one step, whose context must outlive it. Each explanation takes one replay.
class GapExplainer {
public:
    explicit GapExplainer(const StepContext& context);

    GapExplanation explain(const Gap& gap) const; // a gap of the step
    GapChain chainOf(const Gap& gap) const;

private:
    std::optional<GapExperiment> experimentOf(const Gap& gap, const GapChain& chain) const;
    SlotId waitedFor(const Gap& gap) const;
    SlotId busyPeer(const Gap& gap) const;
    std::string nameOf(SpanId span) const;

    const Timeline& m_timeline;
    const StepOps& m_ops;
    const StepGraph& m_graph;
    const StepLevels& m_levels;
};

} // namespace stagewright
