// Planning: zb-auto and V-Half at 64 ranks × 256 microbatches, plans of four ranks until proven or out of budget, and
// twenty stored large shapes at tight caps, 5 s each: the gap to the bound counts, not the time.
#include <ctime>

#include <benchmark/benchmark.h>

#include "schedules/library/registry.h"
#include "schedules/plan/plan.h"
#include "tests/schedules/large_plans.h"

using namespace stagewright;

namespace {

void make(benchmark::State& state, const char* name)
{
    const Shape shape{static_cast<int>(state.range(0)), static_cast<int>(state.range(1))};
    for (auto _ : state) {
        const auto schedule = makeSchedule(name, shape);
        if (!schedule) state.SkipWithError(schedule.error().message.c_str());
        benchmark::DoNotOptimize(schedule);
    }
}

// ranks, microbatches, chunks, cap in tenths of a microbatch activation (0: none)
void planned(benchmark::State& state)
{
    PlanRequest request;
    request.ranks = static_cast<int>(state.range(0));
    request.microbatches = static_cast<int>(state.range(1));
    request.chunks = static_cast<int>(state.range(2));
    Schedule shape;
    shape.ranks = request.ranks;
    shape.stages = request.ranks * request.chunks;
    request.costs = CostModel::uniform(shape);
    if (state.range(3) > 0)
        request.caps.assign(static_cast<std::size_t>(request.ranks), state.range(3) * activationShare / 10);
    double gap = 0;
    for (auto _ : state) {
        const auto found = plan(request);
        if (!found) {
            state.SkipWithError(found.error().message.c_str());
            break;
        }
        gap = found->gap;
    }
    state.counters["gap"] = gap;
}

// Number of the stored case; gap in per cent. The budget is CPU time, so that a busy machine gives the same.
void large(benchmark::State& state)
{
    PlanRequest request = stagewright::testing::requestOf(stagewright::testing::largePlans[state.range(0)]);
    request.clock = [] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
    for (auto _ : state) {
        const auto found = plan(request);
        if (!found) {
            state.SkipWithError(found.error().message.c_str());
            break;
        }
        state.counters["gap_percent"] = 100 * found->gap;
        state.counters["orders"] = static_cast<double>(found->tries);
        state.counters["relaxations"] = static_cast<double>(found->nodes);
    }
}

} // namespace

BENCHMARK(large)->DenseRange(0, 19)->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(make, zb_auto, "zb-auto")->Args({64, 256})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(make, zb_auto_2p, "zb-auto:limit=2")->Args({64, 256})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(make, v_min, "v-min")->Args({64, 256})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(make, v_half, "v-half")->Args({64, 256})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(make, v_zb, "v-zb")->Args({64, 256})->Unit(benchmark::kMillisecond);
BENCHMARK(planned)->Args({4, 8, 1, 40})->Args({4, 8, 1, 80})->Args({4, 8, 1, 30})->Unit(benchmark::kMillisecond);
BENCHMARK(planned)
    ->Args({4, 8, 2, 20})
    ->Args({4, 8, 2, 25})
    ->Args({4, 8, 2, 30})
    ->Args({4, 8, 2, 40})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(planned)->Args({4, 8, 2, 15})->Args({8, 16, 2, 40})->Iterations(1)->Unit(benchmark::kMillisecond);

BENCHMARK_MAIN();
