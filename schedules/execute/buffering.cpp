#include "schedules/execute/buffering.h"

#include <fmt/format.h>

#include "schedules/model/op_index.h"
#include "schedules/step/step_deadlock.h"

namespace stagewright {

Result<std::vector<RuleOutcome>> outcomesWithoutBuffers(const Schedule& schedule, int perDirection)
{
    std::vector<RuleOutcome> out;
    for (const LoweringRule rule : {LoweringRule::JustInTime, LoweringRule::PyTorch, LoweringRule::EagerPost,
                                    LoweringRule::RankParity, LoweringRule::Grouped, LoweringRule::Batched}) {
        RuleOutcome outcome;
        outcome.lowering.rule = rule;
        outcome.channels.sends = SendMode::Rendezvous;
        outcome.channels.perDirection = perDirection;
        outcome.channels.receives = receivesOf(rule);
        STAGEWRIGHT_TRY(const auto lowered, lower(schedule, outcome.lowering));
        STAGEWRIGHT_TRY(const auto cells, cellsOf(lowered));
        for (const Wait& wait : findDeadlock(lowered, OpIndex(lowered, cells), outcome.channels))
            outcome.cycle.push_back(wait.rank);
        out.push_back(std::move(outcome));
    }
    return out;
}

std::string describeOutcomes(const std::vector<RuleOutcome>& outcomes)
{
    std::string hang;
    std::string end;
    for (const RuleOutcome& outcome : outcomes) {
        std::string& list = outcome.ends() ? end : hang;
        list += (list.empty() ? "" : ", ") + toText(outcome.lowering);
    }
    if (hang.empty() && end.empty()) return {};
    if (hang.empty()) return "completes without buffers under every rule";
    if (end.empty()) return "needs buffers under every rule";
    return fmt::format("needs buffers under {}; completes without under {}", hang, end);
}

} // namespace stagewright
