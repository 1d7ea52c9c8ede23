#include "widgets/panel/run_figures.h"

#include <algorithm>

#include "schedules/registry.h"
#include "schedules/timeline/timeline_of.h"
#include "traces/analysis/memory.h"
#include "traces/fit/fit_costs.h"
#include "traces/fit/split_costs.h"
#include "traces/run_facts.h"

namespace stagewright {

Result<Schedule> scheduleOfRun(const Run& run)
{
    if (run.schedule) return *run.schedule;
    if (!run.timeline || run.timeline->empty())
        return fail(ErrorCode::Invalid, "run " + run.info.name + " holds no schedule and no spans", "record it again");
    return scheduleOf(*run.timeline, run.representativeStep());
}

Result<CostModel> costsOf(const Run& run)
{
    auto schedule = scheduleOfRun(run);
    if (!schedule) return tl::unexpected(schedule.error());
    if (run.costs) return *run.costs;
    if (run.timeline && !run.timeline->empty()) {
        const int first = std::min(run.info.warmupSteps, std::max(0, run.timeline->steps() - 1));
        if (auto fitted = fitCosts(*run.timeline, first)) return *fitted;
    }
    return CostModel::uniform(*schedule);
}

std::optional<Baseline> baselineOf(const Schedule& schedule, const CostModel& costs)
{
    if (schedule.ranks < 2 || schedule.placement.hasCopies()) return std::nullopt;
    auto other = makeSchedule("1f1b", Shape{schedule.ranks, schedule.microbatches, 1});
    if (!other) return std::nullopt;
    CostModel given = costs;
    completeWhole(given, schedule.ranks);
    CostModel merged(schedule.ranks, costs.source);
    merged.links = given.links;
    merged.timeUnit = given.timeUnit;
    merged.memoryUnit = given.memoryUnit;
    for (int rank = 0; rank < schedule.ranks; ++rank) {
        StageMemory memory;
        for (const OpKind kind : {OpKind::Forward, OpKind::Backward}) {
            Nanos sum = 0;
            for (const int stage : schedule.placement.stagesOf(rank))
                sum += given.duration(kind, stage, rank);
            merged.setDuration(kind, rank, sum);
        }
        for (const int stage : schedule.placement.stagesOf(rank)) {
            if (stage >= given.stages()) continue;
            const StageMemory& part = given.memory[static_cast<std::size_t>(stage)];
            memory.activation += part.activation;
            memory.boundary = std::max(memory.boundary, part.boundary);
        }
        merged.memory[static_cast<std::size_t>(rank)] = memory;
    }
    auto result = simulate(*other, merged);
    if (!result || result->makespan <= 0) return std::nullopt;
    Baseline baseline;
    baseline.name = "1F1B";
    baseline.bubbleFraction = figuresOf(*other, *result).bubbleFraction;
    baseline.makespan = result->makespan;
    baseline.peakActivation = result->peakActivation;
    return baseline;
}

Result<RunFigures> runFigures(const Run& run, int step, std::optional<Bytes> memoryCap)
{
    RunFigures figures;
    if (!run.timeline) return figures;
    const Timeline& timeline = *run.timeline;
    if (step < 0) step = run.representativeStep();
    figures.step = std::max(0, step);
    if (!memoryCap) memoryCap = memoryCapOf(run);
    auto bubbles = analyseBubbles(timeline, figures.step, BubbleOptions{memoryCap});
    if (!bubbles) return tl::unexpected(bubbles.error());
    figures.bubbles = std::move(*bubbles);
    figures.overlap = analyseOverlap(timeline, figures.step);
    figures.criticalPath = criticalPath(timeline, figures.step);
    if (timeline.hasMemory()) {
        figures.peakActivation = peakByRank(timeline, MemoryCategory::Activations, figures.step);
        figures.peakWeights = peakByRank(timeline, MemoryCategory::Weights, figures.step);
    }
    for (const Track& track : timeline.tracks()) {
        const auto [first, last] = timeline.stepRange(track, figures.step);
        for (SpanId id = first; id < last; ++id)
            figures.spans += timeline.spans()[id].step == figures.step ? 1U : 0U;
    }
    figures.levers = leversOf(run, figures.step, memoryCap);
    figures.overSteps = sampleSteps(run, memoryCap);
    const auto schedule = scheduleOfRun(run);
    const auto costs = costsOf(run);
    if (schedule && costs) {
        figures.baseline = baselineOf(*schedule, *costs);
        figures.linkLatency = costs->links.all.latency;
    }
    return figures;
}

} // namespace stagewright
