// Slack: how much later an op could have started without making the step longer, with unchanged durations, orders and
// transfers. Ops of the critical path have none.
#pragma once

#include <vector>

#include "schedules/timeline/timeline.h"

namespace stagewright {

struct OpSlack {
    SpanId span = noSpan;
    Nanos slack = 0;
};

// Of every busy span of the step, by rank, then start. O((spans + edges) log spans).
std::vector<OpSlack> slackOf(const Timeline& timeline, int step);

} // namespace stagewright
