#include "engine/execution_plan.h"

#include <fmt/format.h>

#include "schedules/validate.h"

namespace stagewright {

namespace {

Result<void> refuse(const Schedule& schedule)
{
    for (int stage = 0; stage < schedule.stages; ++stage) {
        const auto& copies = schedule.placement.copiesOf(stage);
        if (copies.size() > 1) {
            return fail(ErrorCode::Usage,
                        fmt::format("stage {} stands on {} ranks: copies of a stage can be simulated but not trained",
                                    stage, copies.size()),
                        "choose a schedule that places each stage on one rank");
        }
    }
    for (std::size_t rank = 0; rank < schedule.order.size(); ++rank) {
        for (std::size_t i = 0; i < schedule.order[rank].size(); ++i) {
            const Op& op = schedule.order[rank][i];
            const bool kindRuns = op.kind == OpKind::Forward || op.kind == OpKind::Backward ||
                                  op.kind == OpKind::InputGrad || op.kind == OpKind::WeightGrad ||
                                  op.kind == OpKind::Filler;
            if (!kindRuns || op.slice >= 0 || op.half != 0) {
                return fail(ErrorCode::Usage,
                            fmt::format("rank {}, op {} ({}): {} can be simulated but not trained", rank, i, toText(op),
                                        op.slice >= 0  ? "a sequence slice"
                                        : op.half != 0 ? "half an op"
                                                       : "this kind"),
                            "train a schedule of whole F, B, I and W ops and delays");
            }
        }
    }
    return {};
}

} // namespace

Result<ExecutionPlan> planExecution(const Schedule& schedule)
{
    if (Result<void> valid = validate(schedule).toResult(); !valid) return tl::unexpected(std::move(valid.error()));
    if (Result<void> runs = refuse(schedule); !runs) return tl::unexpected(std::move(runs.error()));

    ExecutionPlan plan;
    for (int rank = 0; rank < schedule.ranks; ++rank) {
        RankPlan ranked;
        ranked.stages = schedule.placement.stagesOf(rank);
        const std::vector<Op>& list = schedule.order[static_cast<std::size_t>(rank)];
        for (std::size_t i = 0; i < list.size(); ++i) {
            PlannedOp planned;
            planned.op = list[i];
            planned.pairedWithNext = schedule.isPaired(rank, i);
            const Op& op = planned.op;
            const bool forward = op.kind == OpKind::Forward;
            const bool moves = forward || op.kind == OpKind::Backward || op.kind == OpKind::InputGrad;
            const auto add = [&](int otherStage, int consumerStage, bool gradient) {
                if (otherStage < 0 || otherStage >= schedule.stages) return 0u;
                for (int j = op.microbatch; j < op.microbatch + op.count; ++j) {
                    ranked.messages.push_back({{j, static_cast<std::uint16_t>(consumerStage), gradient},
                                               schedule.placement.rankOf(otherStage, j)});
                }
                return static_cast<std::uint32_t>(op.count);
            };
            const int stage = op.stage;
            planned.firstInput = static_cast<std::uint32_t>(ranked.messages.size());
            if (moves) planned.inputCount = forward ? add(stage - 1, stage, false) : add(stage + 1, stage, true);
            planned.firstOutput = static_cast<std::uint32_t>(ranked.messages.size());
            if (moves)
                planned.outputCount = forward ? add(stage + 1, stage + 1, false) : add(stage - 1, stage - 1, true);
            ranked.ops.push_back(planned);
        }
        plan.ranks.push_back(std::move(ranked));
    }
    return plan;
}

} // namespace stagewright
