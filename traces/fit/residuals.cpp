#include "traces/fit/residuals.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "schedules/base/median.h"
#include "schedules/execute/simulate.h"
#include "traces/fit/executed_run.h"
#include "traces/fit/fit_costs.h"
#include "traces/step/step_ops.h"

namespace stagewright {

namespace {

// An overlapped pair is one interval of both: it says nothing of either.
bool paired(const Timeline& timeline, SpanId id)
{
    const Track& track = timeline.trackOf(id);
    const auto same = [&](SpanId other) {
        return timeline.spans()[other].start == timeline.spans()[id].start &&
               timeline.spans()[other].end == timeline.spans()[id].end;
    };
    return (id > track.begin && same(id - 1)) || (id + 1 < track.end && same(id + 1));
}

} // namespace

std::vector<OpResidual> residualsOfStep(const Timeline& timeline, int step, const CostModel& costs)
{
    std::vector<OpResidual> out;
    const StepOps ops(timeline, step);
    for (int rank = 0; rank < ops.ranks(); ++rank)
        for (const SpanId id : ops.busy(rank)) {
            const Span& span = timeline.spans()[id];
            if ((span.flags & SpanDiscarded) == 0 && !paired(timeline, id))
                out.push_back({id, costs.duration(span.op, rank), span.duration()});
        }
    return out;
}

Result<void> hasSchedule(const Run& run)
{
    if (run.schedule) return {};
    return fail(ErrorCode::Usage, fmt::format("run {} has no schedule to predict from", run.info.name));
}

Result<Residuals> residualsOf(const Run& run, const CostModel& costs)
{
    STAGEWRIGHT_CHECK(hasSchedule(run));
    const auto own = costsOf(run);
    const CostsAre whose = own && *own == costs ? CostsAre::Own : CostsAre::Others;
    STAGEWRIGHT_TRY(const auto executed, executedRun(run, costs, whose));
    STAGEWRIGHT_TRY(const auto predicted, simulate(executed.schedule, executed.costs, executed.channels));
    return residualsOf(run, costs, figuresOf(executed.schedule, predicted).makespan);
}

Result<Residuals> residualsOf(const Run& run, const CostModel& costs, Nanos predictedStep)
{
    const Timeline& timeline = *run.timeline;
    Residuals out;
    out.predictedStep = predictedStep;
    const int first = std::clamp(run.info.warmupSteps, 0, std::max(0, timeline.steps() - 1));
    std::vector<Nanos> steps;
    std::map<std::tuple<OpKind, int, int>, std::vector<SpanId>> groups;
    out.measured = timeline.steps() - first;
    for (const int step : stepsFrom(timeline, first)) {
        const StepOps ops(timeline, step);
        if (ops.empty()) continue;
        steps.push_back(ops.windowEnd() - ops.windowBegin());
        for (int rank = 0; rank < ops.ranks(); ++rank)
            for (const SpanId id : ops.busy(rank)) {
                const Op& op = timeline.spans()[id].op;
                if ((timeline.spans()[id].flags & SpanDiscarded) == 0) groups[{op.kind, op.stage, rank}].push_back(id);
            }
    }
    if (steps.empty()) return fail(ErrorCode::Invalid, fmt::format("run {} has no measured step", run.info.name));

    for (const auto& [key, members] : groups) {
        OpResiduals of;
        std::tie(of.kind, of.stage, of.rank) = key;
        std::vector<Nanos> durations;
        std::vector<Nanos> predictions;
        std::vector<Nanos> residuals;
        std::vector<Nanos> sizes;
        for (const SpanId id : members) {
            if (paired(timeline, id)) continue;
            const Span& span = timeline.spans()[id];
            predictions.push_back(costs.duration(span.op, of.rank));
            const Nanos residual = span.duration() - predictions.back();
            durations.push_back(span.duration());
            residuals.push_back(residual);
            sizes.push_back(std::llabs(residual));
            if (of.worst != noSpan && std::llabs(residual) <= std::llabs(of.worstResidual)) continue;
            of.worst = id;
            of.worstResidual = residual;
        }
        if (durations.empty()) continue;
        of.count = static_cast<std::int64_t>(durations.size());
        of.predicted = lowerMedian(std::move(predictions));
        of.measured = lowerMedian(std::move(durations));
        of.residual = lowerMedian(std::move(residuals));
        of.percentile95 = quantileOf(std::move(sizes), 0.95);
        out.ops.push_back(of);
    }
    out.steps = static_cast<std::int64_t>(steps.size());
    out.measuredStep = lowerMedian(std::move(steps));
    if (out.measuredStep > 0)
        out.error = static_cast<double>(out.predictedStep - out.measuredStep) / static_cast<double>(out.measuredStep);
    return out;
}

} // namespace stagewright
