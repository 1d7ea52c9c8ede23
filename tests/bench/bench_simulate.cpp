// Placing and simulating large schedules. items_per_second counts ops; the target is 10 million per second on one core
// at 64 ranks × 512 microbatches split into F, I and W (placing, without building a timeline).
#include <benchmark/benchmark.h>

#include "schedules/check/validate.h"
#include "schedules/execute/deadlock.h"
#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"
#include "schedules/messages/lower.h"
#include "schedules/model/shard_rules.h"
#include "schedules/timeline/timeline_of.h"

using namespace stagewright;

namespace {

Schedule large(const char* name, int chunks = 0) { return *makeSchedule(name, {64, 512, chunks}); }

CostModel costsFor(const Schedule& schedule)
{
    CostModel::UnitCosts units;
    units.latency = 0.1;
    return CostModel::uniform(schedule, units);
}

void countOps(benchmark::State& state, const Schedule& schedule)
{
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) *
                            static_cast<std::int64_t>(schedule.opCount()));
    state.counters["ops"] = static_cast<double>(schedule.opCount());
}

void place(benchmark::State& state, const char* name)
{
    const Schedule schedule = large(name);
    const CostModel costs = costsFor(schedule);
    const std::vector<Nanos> durations = durationsOf(schedule, costs);
    for (auto _ : state) {
        auto result = stagewright::place(schedule, durations, costs.links);
        benchmark::DoNotOptimize(result->makespan);
    }
    countOps(state, schedule);
}

// 16 replicas that share all state, computed once.
void simulateReplicas(benchmark::State& state)
{
    const Schedule schedule =
        *addShardOps(large("1f1b"), ShardLevel::Weights, {GatherRule::Microbatch, 0, ReduceRule::Overlapped});
    CostModel costs = costsFor(schedule);
    costs.replicas = 16;
    costs.sharding.level = ShardLevel::Weights;
    costs.links.collectives = ResourceUse::Beside;
    for (int stage = 0; stage < schedule.stages; ++stage) {
        costs.setDuration(OpKind::Unshard, stage, rankShare / 4);
        costs.setDuration(OpKind::ReduceGrad, stage, rankShare);
    }
    for (auto _ : state) {
        auto result = simulate(schedule, costs);
        benchmark::DoNotOptimize(result->makespan);
    }
    countOps(state, schedule);
}
BENCHMARK(simulateReplicas)->Unit(benchmark::kMillisecond);

void simulateAll(benchmark::State& state, const char* name)
{
    const Schedule schedule = large(name);
    const CostModel costs = costsFor(schedule);
    for (auto _ : state) {
        auto result = simulate(schedule, costs);
        benchmark::DoNotOptimize(result->peakActivation.data());
    }
    countOps(state, schedule);
}

// 1F1B with its messages, range(0) ranks × range(1) microbatches. Ops are those of the lowered lists.
Schedule loweredRange(const benchmark::State& state, LoweringRule rule)
{
    Lowering lowering;
    lowering.rule = rule;
    return *lower(*makeSchedule("1f1b", {static_cast<int>(state.range(0)), static_cast<int>(state.range(1))}),
                  lowering);
}

void lowerAll(benchmark::State& state, LoweringRule rule)
{
    const Schedule schedule = withoutCommunication(loweredRange(state, rule));
    Lowering lowering;
    lowering.rule = rule;
    for (auto _ : state) benchmark::DoNotOptimize(lower(schedule, lowering)->order.data());
    countOps(state, *lower(schedule, lowering));
}

void validateRendezvous(benchmark::State& state)
{
    const Schedule schedule = loweredRange(state, LoweringRule::PyTorch);
    Channels channels;
    channels.sends = SendMode::Rendezvous;
    for (auto _ : state) benchmark::DoNotOptimize(validate(schedule, channels).valid());
    countOps(state, schedule);
}

// With its fix.
void explainHang(benchmark::State& state)
{
    const Schedule schedule = loweredRange(state, LoweringRule::JustInTime);
    Channels channels;
    channels.sends = SendMode::Rendezvous;
    for (auto _ : state) benchmark::DoNotOptimize(explainDeadlock(schedule, channels)->fix.size());
    countOps(state, schedule);
}

void validateAll(benchmark::State& state, const char* name)
{
    const Schedule schedule = large(name);
    for (auto _ : state) benchmark::DoNotOptimize(validate(schedule).valid());
    countOps(state, schedule);
}

void buildTimeline(benchmark::State& state, const char* name)
{
    const Schedule schedule = large(name);
    const CostModel costs = costsFor(schedule);
    const auto result = simulate(schedule, costs);
    for (auto _ : state) benchmark::DoNotOptimize(timelineOf(schedule, *result, costs)->get());
    countOps(state, schedule);
}

void generate(benchmark::State& state, const char* name)
{
    for (auto _ : state) benchmark::DoNotOptimize(large(name).order.data());
    countOps(state, large(name));
}

// Ten million spans, as a long run has them: 64 tracks, 100 steps, appended step by step or already in order.
void builderInOrder(benchmark::State& state)
{
    const std::int64_t spans = state.range(0);
    for (auto _ : state) {
        TimelineBuilder builder(Provenance::Measured, "wall", 64);
        builder.reserve(static_cast<std::size_t>(spans));
        for (int r = 0; r < 64; ++r) {
            const int track = builder.addTrack(r, Lane::Compute);
            for (std::int64_t i = 0; i < spans / 64; ++i) {
                Span span;
                span.start = i * 10;
                span.end = i * 10 + 9;
                span.op = makeOp(OpKind::Forward, r, static_cast<int>(i % 512));
                span.step = static_cast<std::int32_t>(i / 1536);
                builder.addSpan(track, span);
            }
        }
        benchmark::DoNotOptimize(builder.build()->get());
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * spans);
}

void builderByStep(benchmark::State& state)
{
    const Schedule schedule = large("zb-h1");
    const SimResult result = *simulate(schedule, CostModel::uniform(schedule));
    std::vector<std::shared_ptr<const Timeline>> steps;
    for (int step = 0; step < static_cast<int>(state.range(0)); ++step) {
        TimelineBuilder builder(Provenance::Measured, "wall", 64);
        for (int r = 0; r < 64; ++r) {
            const int track = builder.addTrack(r, Lane::Compute);
            for (std::size_t i = 0; i < schedule.order[static_cast<std::size_t>(r)].size(); ++i) {
                Span span;
                span.start = result.start[result.indexOf(r, i)] + step * result.makespan;
                span.end = result.end[result.indexOf(r, i)] + step * result.makespan;
                span.op = schedule.order[static_cast<std::size_t>(r)][i];
                span.step = step;
                builder.addSpan(track, span);
            }
        }
        steps.push_back(*builder.build());
    }
    for (auto _ : state) {
        TimelineBuilder builder(Provenance::Measured, "wall", 64);
        for (const auto& step : steps) builder.append(*step);
        benchmark::DoNotOptimize(builder.build()->get());
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * state.range(0) *
                            static_cast<std::int64_t>(schedule.opCount()));
}

} // namespace

BENCHMARK_CAPTURE(place, zb_h1, "zb-h1")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(place, one_f_one_b, "1f1b")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(place, interleaved, "interleaved-1f1b")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulateAll, zb_h1, "zb-h1")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(lowerAll, just_in_time, LoweringRule::JustInTime)
    ->Args({64, 512})
    ->Args({512, 1024})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(lowerAll, pytorch, LoweringRule::PyTorch)
    ->Args({64, 512})
    ->Args({512, 1024})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(validateRendezvous)->Args({64, 512})->Args({512, 1024})->Unit(benchmark::kMillisecond);
BENCHMARK(explainHang)->Args({64, 512})->Args({512, 1024})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(validateAll, zb_h1, "zb-h1")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(buildTimeline, zb_h1, "zb-h1")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate, zb_h1, "zb-h1")->Unit(benchmark::kMillisecond);
BENCHMARK(builderInOrder)->Arg(1'000'000)->Arg(10'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(builderByStep)->Arg(20)->Unit(benchmark::kMillisecond);

BENCHMARK_MAIN();
