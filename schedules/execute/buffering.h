// Under which lowering rules a schedule completes without buffers: found by running its lowered lists under rendezvous.
#pragma once

#include <string>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/messages/channels.h"
#include "schedules/messages/lower.h"
#include "schedules/model/schedule.h"

namespace stagewright {

struct RuleOutcome {
    Lowering lowering;
    Channels channels;      // rendezvous, with the receives that the rule is meant for
    std::vector<int> cycle; // ranks that wait for each other, in waiting order; empty: it ends

    bool ends() const { return cycle.empty(); }
};

// Every rule, in the order of LoweringRule. perDirection as in Channels. Fails (Invalid) where the schedule can't be
// lowered: one that is not valid. O(ops).
Result<std::vector<RuleOutcome>> outcomesWithoutBuffers(const Schedule& schedule, int perDirection = 0);

// "needs buffers under just-in-time, rank-parity; completes without under pytorch, eager-post, grouped, batched"; ""
// for no outcomes.
std::string describeOutcomes(const std::vector<RuleOutcome>& outcomes);

} // namespace stagewright
