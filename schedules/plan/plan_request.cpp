#include "schedules/plan/plan_request.h"

#include <fmt/format.h>

#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

Result<void> fitsAPlan(const Schedule& schedule)
{
    if (schedule.weights != WeightRule::Synchronous)
        return fail(ErrorCode::Usage, "the planner does not support asynchronous schedules");
    for (const auto& row : schedule.order)
        for (const Op& op : row) {
            if (isRecompute(op.kind)) return fail(ErrorCode::Usage, "the planner does not support recomputation");
            if (op.slice >= 0 || op.half != 0 || op.count > 1)
                return fail(ErrorCode::Usage, "the planner supports whole microbatches only");
        }
    return {};
}

// A full backward is an input gradient without a weight gradient behind it.
void joinBackward(const Schedule& schedule, CostModel& costs)
{
    for (int stage = 0; stage < schedule.stages; ++stage) {
        const int rank = schedule.placement.rankOf(stage, -1);
        const Nanos whole = costs.duration(OpKind::Backward, stage, rank);
        if (rank < 0 || whole <= 0) continue;
        costs.setDuration(OpKind::InputGrad, stage, rank, whole);
        costs.setDuration(OpKind::WeightGrad, stage, rank, 0);
        const auto wholes = costs.microbatchDurations(OpKind::Backward, stage);
        for (const auto& [kind, own] : {std::pair(OpKind::InputGrad, std::vector<Nanos>(wholes.begin(), wholes.end())),
                                        std::pair(OpKind::WeightGrad, std::vector<Nanos>(wholes.size(), 0))})
            for (std::size_t j = 0; j < own.size(); ++j)
                costs.setMicrobatchDuration(kind, stage, static_cast<int>(j), own[j]);
        if (stage < costs.stages()) {
            StageMemory& memory = costs.memory[static_cast<std::size_t>(stage)];
            memory.freedAtInput = memory.activation;
        }
    }
}

} // namespace

Result<PlanRequest> planRequestFor(const Schedule& schedule, const CostModel& costs, bool split)
{
    PlanRequest request;
    request.ranks = schedule.ranks;
    request.microbatches = schedule.microbatches;
    request.costs = costs;
    request.seconds = 0;
    if (schedule.stages == schedule.ranks && schedule.placement == Placement::loop(schedule.ranks, schedule.stages))
        request.chunks = 1;
    else if (schedule.stages == 2 * schedule.ranks && schedule.placement == Placement::vShape(schedule.ranks))
        request.chunks = 2;
    else
        return fail(
            ErrorCode::Usage,
            fmt::format("the planner needs one stage per rank, or two in V placement, unlike {}", schedule.name));
    STAGEWRIGHT_CHECK(fitsAPlan(schedule));
    if (!split) joinBackward(schedule, request.costs);
    return request;
}

Schedule planInFamily(const Schedule& plan, const Schedule& schedule, bool split)
{
    Schedule out = plan;
    out.name = schedule.name;
    if (split) return out;
    for (std::vector<Op>& row : out.order) {
        std::erase_if(row, [](const Op& op) { return isWeightGrad(op.kind); });
        for (Op& op : row)
            if (isInputGrad(op.kind)) op.kind = OpKind::Backward;
    }
    return out;
}

} // namespace stagewright
