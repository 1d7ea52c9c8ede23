// Interactive answers: what-if questions and explanations of a step of 64 ranks × 512 microbatches, F, I and W: 98,304
// ops. The target is a what-if answer within one frame, 16 ms.
#include <benchmark/benchmark.h>

#include "schedules/library/registry.h"
#include "schedules/plan/what_if.h"
#include "schedules/timeline/timeline_of.h"
#include "traces/analysis/gap_explainer.h"
#include "traces/analysis/slack.h"
#include "traces/report/run_report.h"

using namespace stagewright;

namespace {

Schedule large() { return *makeSchedule("zb-h1", {64, 512}); }

CostModel costsFor(const Schedule& schedule)
{
    CostModel::UnitCosts units;
    units.latency = 0.1;
    CostModel costs = CostModel::uniform(schedule, units);
    costs.setDuration(OpKind::Forward, 7, rankShare * 5 / 4); // so that the replays have something to do
    return costs;
}

void whatIf(benchmark::State& state, const char* question)
{
    const Schedule schedule = large();
    const WhatIf base = *WhatIf::create(schedule, costsFor(schedule));
    const auto changes = *parseWhatIf(question);
    for (auto _ : state) benchmark::DoNotOptimize(base.answer(changes)->makespanAfter);
    state.counters["ops"] = static_cast<double>(schedule.opCount());
}

void bubbles(benchmark::State& state)
{
    const Schedule schedule = large();
    const auto timeline = *simulatedTimeline(schedule, costsFor(schedule));
    for (auto _ : state) benchmark::DoNotOptimize(analyseBubbles(*timeline, 0)->idle);
}

void slack(benchmark::State& state)
{
    const Schedule schedule = large();
    const auto timeline = *simulatedTimeline(schedule, costsFor(schedule));
    for (auto _ : state) benchmark::DoNotOptimize(StepContext(*timeline, 0).slack().data());
}

void explainOne(benchmark::State& state)
{
    const Schedule schedule = large();
    const auto timeline = *simulatedTimeline(schedule, costsFor(schedule));
    const auto report = *analyseBubbles(*timeline, 0);
    const StepContext context(*timeline, 0);
    const GapExplainer explainer(context);
    std::size_t i = 0;
    for (auto _ : state)
        benchmark::DoNotOptimize(explainer.explain(report.gaps[i++ % report.gaps.size()]).sentence.data());
}

// A run with its costs, or, as an import, one from whose spans they are fitted.
Run runOf(bool imported)
{
    Run run;
    const Schedule schedule = large();
    const CostModel costs = costsFor(schedule);
    run.timeline = *simulatedTimeline(schedule, costs);
    run.info.ranks = schedule.ranks;
    run.info.steps = 1;
    run.schedule = std::make_shared<const Schedule>(schedule);
    if (!imported) run.costs = costs;
    if (imported) run.info.provenance = Provenance::Imported;
    return run;
}

// Figures, levers and tables, as `report --table all` and the HTML page have them, and the five longest gaps explained.
void report(benchmark::State& state, bool imported)
{
    const Run run = runOf(imported);
    for (auto _ : state) {
        const StepContext context(run, 0);
        const auto report = *reportOf(context, {.levers = true});
        const auto tables = reportTables(context);
        const GapExplainer explainer(context);
        for (std::size_t i = 0; i < 5; ++i)
            benchmark::DoNotOptimize(explainer.explain(report.bubbles.gaps[i]).sentence.data());
        benchmark::DoNotOptimize(tables.data());
    }
}

} // namespace

BENCHMARK_CAPTURE(whatIf, kind, "F*0.5")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whatIf, rank, "rank7*1.5")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whatIf, link, "link6-7*4")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whatIf, microbatches, "m+8")->Unit(benchmark::kMillisecond);
BENCHMARK(bubbles)->Unit(benchmark::kMillisecond);
BENCHMARK(slack)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(report, own_costs, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(report, fitted_costs, true)->Unit(benchmark::kMillisecond);
BENCHMARK(explainOne)->Unit(benchmark::kMillisecond);

BENCHMARK_MAIN();
