// Slack: how much later an op could have started without making the step longer, with unchanged durations, orders and
// transfers. Ops of the critical path have none.
#pragma once

#include <vector>

#include "traces/step/step_graph.h"

namespace stagewright {

struct OpSlack {
    SpanId span = noSpan;
    int rank = 0;
    Nanos slack = 0;
};

// The slack of every busy span of the step, by rank, then start. `graph` is that of these ops. O(spans + edges).
std::vector<OpSlack> slackOf(const StepOps& ops, const StepGraph& graph);

} // namespace stagewright
