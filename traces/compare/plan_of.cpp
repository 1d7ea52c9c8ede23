#include "traces/compare/plan_of.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "traces/analysis/explain_gap.h"
#include "traces/fit/executed_run.h"
#include "traces/run/simulated_run.h"

namespace stagewright {

Result<Run> planOf(const Run& run)
{
    if (!run.schedule)
        return fail(ErrorCode::Usage, fmt::format("run {} has no schedule, so it has no plan", run.info.name),
                    "only runs with a known schedule have a plan; the run's note says why its schedule is unknown");
    STAGEWRIGHT_TRY(auto executed, usualRun(run));
    // the comparison should show ops that took longer than their stage's others
    executed.costs.clearMicrobatchDurations();
    STAGEWRIGHT_TRY(auto plan, simulatedRun(executed.schedule, executed.costs, executed.channels, executed.lowering));
    plan.info.name = fmt::format("{} as planned", run.info.name);
    return plan;
}

namespace {

std::string later(Nanos delta)
{
    return fmt::format("{} {} than planned", formatDuration(std::abs(delta)), delta > 0 ? "later" : "earlier");
}

} // namespace

std::optional<Deviation> firstDeviation(const Run& plan, const Run& run, const Comparison& comparison)
{
    if (!comparison.sameUnits) return std::nullopt;
    const Nanos least = std::max<Nanos>(1, comparison.reportA.bubbles.makespan() / 50);
    const OpDelta* first = nullptr;
    const auto planned = [&plan](const OpDelta& op) { return plan.timeline->spans()[op.a].start; };
    for (const OpDelta& op : comparison.ops) {
        if (!op.inBoth()) continue;
        if (std::abs(op.startDelta) <= least && std::abs(op.startDelta + op.durationDelta) <= least) continue;
        if (first == nullptr || std::pair(planned(op), op.rank) < std::pair(planned(*first), first->rank)) first = &op;
    }
    if (first == nullptr) return std::nullopt;
    Deviation out;
    out.op = *first;
    const std::string name = fmt::format("{} on rank {}", toText(first->op), first->rank);
    if (std::abs(first->startDelta) <= least) {
        const Nanos took = run.timeline->spans()[first->b].duration();
        out.sentence =
            fmt::format("{} ends {}: it took {} instead of {}", name, later(first->startDelta + first->durationDelta),
                        formatDuration(took), formatDuration(took - first->durationDelta));
        return out;
    }
    out.sentence = fmt::format("{} starts {}", name, later(first->startDelta));
    const Gap* before = nullptr; // the longest wait that it ended
    for (const Gap& gap : comparison.reportB.bubbles.gaps)
        if (gap.next == first->b && (before == nullptr || gap.end - gap.start > before->end - before->start))
            before = &gap;
    if (before != nullptr && first->startDelta > 0) out.sentence += ": " + explainGap(*run.timeline, *before);
    return out;
}

} // namespace stagewright
