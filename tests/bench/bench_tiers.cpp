// Memory on two tiers and orders by readiness: replays of a step of 10⁴ accesses at every cap, pieces placed into gaps,
// orders that ranks find while they run against timing their list.
#include <benchmark/benchmark.h>

#include "schedules/execute/ready_order.h"
#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"
#include "schedules/tiers/chunks.h"
#include "schedules/tiers/fill_gaps.h"

using namespace stagewright;

namespace {

// 1F1B of 104 microbatches over 32 layers: 9,984 accesses of 64 pieces; caps 2 … 64 under one policy.
void allCaps(benchmark::State& state)
{
    std::vector<char> passes;
    for (int i = 0; i < 4; ++i) passes.push_back('F');
    for (int i = 0; i < 100; ++i) passes.insert(passes.end(), {'B', 'F'});
    for (int i = 0; i < 4; ++i) passes.push_back('B');
    const auto trace = AccessTrace::of(accessesOfPasses(passes, 32));
    std::int64_t loads = 0;
    for (auto _ : state)
        for (int cap = 2; cap <= trace->pieces(); ++cap) {
            const int caps[] = {cap};
            loads += trace->replay(caps, evictions[state.range(0)], false)->loads;
        }
    benchmark::DoNotOptimize(loads);
    state.counters["caps"] = trace->pieces() - 1;
}

void fill(benchmark::State& state)
{
    const auto schedule = makeSchedule("1f1b", {8, 32});
    const auto result = simulate(*schedule, CostModel::uniform(*schedule));
    std::vector<BusyOp> busy;
    for (std::size_t i = 0; i < schedule->order[2].size(); ++i) {
        const std::size_t id = result->indexOf(2, i);
        const bool forward = schedule->order[2][i].kind == OpKind::Forward;
        busy.push_back({result->start[id], result->end[id], forward ? BusyOp::Kind::Forward : BusyOp::Kind::Backward});
    }
    const Nanos unit = rankShare / 4;
    const std::vector<FillerWork> works{{"A", FillerWork::After::Forwards, 32, unit, {}},
                                        {"G", FillerWork::After::Backwards, 32, unit, {}},
                                        {"inverse", FillerWork::After::Works, 64, unit, {0, 1}}};
    for (auto _ : state) {
        const auto filled = fillGaps(busy, result->makespan, works, state.range(0) != 0);
        if (!filled) state.SkipWithError(filled.error().message.c_str());
        benchmark::DoNotOptimize(filled);
    }
}

void ordered(benchmark::State& state)
{
    const auto schedule = makeSchedule("zb-h1", {static_cast<int>(state.range(0)), static_cast<int>(state.range(1))});
    CostModel costs = CostModel::uniform(*schedule);
    costs.jitter = 0.3;
    for (auto _ : state) benchmark::DoNotOptimize(orderByReadiness(*schedule, costs, {.by = ReadyOrder::By::Hint}));
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(schedule->opCount()));
}
void listed(benchmark::State& state)
{
    const auto schedule = makeSchedule("zb-h1", {static_cast<int>(state.range(0)), static_cast<int>(state.range(1))});
    CostModel costs = CostModel::uniform(*schedule);
    costs.jitter = 0.3;
    for (auto _ : state) benchmark::DoNotOptimize(simulate(*schedule, costs));
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(schedule->opCount()));
}

} // namespace

BENCHMARK(allCaps)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);
BENCHMARK(fill)->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);
BENCHMARK(ordered)->Args({8, 32})->Args({64, 512})->Unit(benchmark::kMicrosecond);
BENCHMARK(listed)->Args({8, 32})->Args({64, 512})->Unit(benchmark::kMicrosecond);

BENCHMARK_MAIN();
