#include "engine/training/step_rules.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/base/op_number.h"
#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

class Rules {
public:
    Rules(const Schedule& schedule, ExecutionPlan& plan) : m_schedule(schedule), m_plan(plan) {}

    Result<void> check()
    {
        const bool synchronous = m_schedule.weights == WeightRule::Synchronous;
        if (m_schedule.placement.hasCopies() && ((m_plan.steps && !m_plan.shared) || !synchronous)) {
            return fail(ErrorCode::Usage,
                        fmt::format("copies of a stage train with one barrier per step, but the schedule has {}",
                                    synchronous ? "optimizer ops in its lists"
                                                : fmt::format("{} weights", toText(m_schedule.weights))),
                        "remove the optimizer ops or place each stage on one rank");
        }
        for (int rank = 0; rank < m_schedule.ranks; ++rank) {
            if (Result<void> fits = checkRank(rank); !fits) return fits;
        }
        return {};
    }

private:
    tl::unexpected<Error> refusal(int rank, std::size_t position, std::string what, std::string remedy = {}) const
    {
        const Op& op = m_schedule.order[static_cast<std::size_t>(rank)][position];
        return fail(ErrorCode::Usage,
                    fmt::format("rank {}, op {} ({}): {}", rank, opNumber(position), toText(op), what),
                    std::move(remedy));
    }

    Result<void> checkRank(int rank)
    {
        RankPlan& ranked = m_plan.ranks[static_cast<std::size_t>(rank)];
        std::vector<int> left(static_cast<std::size_t>(m_schedule.stages), 0); // ops that add weight gradients
        std::vector<int> since(left.size(), 0);                                // of these, since the last step
        std::vector<int> steps(left.size(), 0);
        for (const PlannedOp& planned : ranked.ops)
            left[planned.op.stage] += makesWeightGradient(planned.op.kind) ? 1 : 0;
        const bool each = m_schedule.weights == WeightRule::Stashed || m_schedule.weights == WeightRule::Predicted;
        for (std::size_t i = 0; i < ranked.ops.size(); ++i) {
            const Op& op = ranked.ops[i].op;
            const std::size_t s = op.stage;
            if (makesWeightGradient(op.kind)) {
                --left[s];
                if (each && (op.count != 1 || op.slice >= 0 || op.half != 0 || since[s] > 0))
                    return refusal(rank, i,
                                   fmt::format("{} weights need an optimizer op after each microbatch",
                                               toText(m_schedule.weights)));
                ++since[s];
            }
            if (m_plan.shared) {
                if (Result<void> fits = checkShared(rank, i, left[s] == 0); !fits) return fits;
            } else if (isReduction(op.kind) && left[s] > 0)
                return refusal(rank, i, fmt::format("{} of its weight gradients follow", left[s]),
                               "reduce after the last one");
            if (!isOptimizer(op.kind)) continue;
            if (each ? since[s] == 0 : left[s] > 0 || steps[s] > 0)
                return refusal(rank, i,
                               each          ? std::string("no weight gradient since the stage's last step")
                               : left[s] > 0 ? fmt::format("{} of the stage's weight gradients follow", left[s])
                                             : std::string("the stage has stepped already"));
            since[s] = 0;
            ++steps[s];
        }
        if (!m_plan.steps && m_schedule.weights == WeightRule::Synchronous) return {};
        for (const int stage : ranked.stages) {
            const auto s = static_cast<std::size_t>(stage);
            if (steps[s] > 0 && since[s] == 0) continue;
            return fail(ErrorCode::Usage,
                        fmt::format("rank {}: stage {} has {} optimizer ops and gradients that none of them applies",
                                    rank, stage, steps[s]),
                        "end the list with an optimizer op of each stage");
        }
        setPredictions(ranked);
        if (m_plan.shared) return checkReduced(rank);
        return {};
    }

    // The global norm is known once every rank has summed up its pieces. A stage may step before, where its rank goes
    // back on through others; a gather of what was stepped waits for the norm, so that nothing but steps and gathers
    // comes behind it.
    Result<void> checkShared(int rank, std::size_t position, bool last)
    {
        const std::vector<PlannedOp>& ops = m_plan.ranks[static_cast<std::size_t>(rank)].ops;
        const Op& op = ops[position].op;
        if (isReduction(op.kind) && !hasMicrobatch(op) && !last)
            return refusal(rank, position, "weight gradients of its stage follow",
                           "reduce after the last one, or each microbatch's");
        if (settles(op.kind)) return {};
        std::vector<char> stepped(static_cast<std::size_t>(m_schedule.stages), 0);
        for (std::size_t i = 0; i < position; ++i) {
            const Op& before = ops[i].op;
            if (isOptimizer(before.kind)) stepped[before.stage] = 1;
            if (isGather(before.kind) && stepped[before.stage] != 0)
                return refusal(rank, position,
                               fmt::format("it follows {} at op {}, which gathers stepped weights; they are certain "
                                           "once all gradients are known",
                                           toText(before), opNumber(i)),
                               "move the gathers of stepped weights to the end of the list");
        }
        if (stepped[op.stage] != 0 && isCompute(op.kind))
            return refusal(rank, position, "its stage has stepped already", "move the stage's optimizer op behind it");
        return {};
    }

    Result<void> checkReduced(int rank) const
    {
        const RankPlan& ranked = m_plan.ranks[static_cast<std::size_t>(rank)];
        for (const int stage : ranked.stages) {
            const auto reduces = [stage](const PlannedOp& planned) {
                return isReduction(planned.op.kind) && planned.op.stage == stage;
            };
            if (std::any_of(ranked.ops.begin(), ranked.ops.end(), reduces)) continue;
            return fail(ErrorCode::Usage,
                        fmt::format("rank {}: the gradients of stage {} are not reduced over the ranks that hold it",
                                    rank, stage),
                        fmt::format("add {} before its optimizer op", toText(makeReduction(stage))));
        }
        return {};
    }

    void setPredictions(RankPlan& ranked) const
    {
        if (m_schedule.weights != WeightRule::Predicted) return;
        const std::vector<std::vector<int>> between = updatesBetween(m_schedule);
        for (PlannedOp& planned : ranked.ops) {
            if (!isForward(planned.op.kind)) continue;
            const std::vector<int>& ofStage = between[planned.op.stage];
            planned.predictedUpdates = ofStage[static_cast<std::size_t>(planned.op.microbatch)];
            planned.predicts = std::any_of(ofStage.begin(), ofStage.end(), [](int updates) { return updates > 0; });
        }
    }

    const Schedule& m_schedule;
    ExecutionPlan& m_plan;
};

} // namespace

Result<void> planSteps(const Schedule& schedule, ExecutionPlan& plan) { return Rules(schedule, plan).check(); }

std::vector<std::vector<int>> updatesBetween(const Schedule& schedule)
{
    std::vector<std::vector<int>> between(static_cast<std::size_t>(schedule.stages),
                                          std::vector<int>(static_cast<std::size_t>(schedule.microbatches), 0));
    for (const std::vector<Op>& list : schedule.order) {
        std::vector<int> steps(static_cast<std::size_t>(schedule.stages), 0);
        for (const Op& op : list) {
            if (isOptimizer(op.kind)) ++steps[op.stage];
            const bool forward = isForward(op.kind);
            if (!forward && !isReturn(op.kind)) continue;
            for (int j = op.microbatch; j < op.microbatch + op.count; ++j) {
                int& delay = between[op.stage][static_cast<std::size_t>(j)];
                delay = forward ? -steps[op.stage] : delay + steps[op.stage];
            }
        }
    }
    return between;
}

} // namespace stagewright
