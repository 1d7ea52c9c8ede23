// Generating the library schedules that do not search, with each of their parameters set: 64 ranks, 256 microbatches on
// one core (target: < 10 ms each). And 1F1B on 2,048 ranks with 4,096 microbatches, 16.8 million ops: placed (target: <
// 2 s), and generated with its durations looked up. The searched ones are in bench_plan, placing at 64 × 512 in
// bench_simulate.
#include <benchmark/benchmark.h>

#include "schedules/execute/simulate.h"
#include "schedules/library/variants.h"

using namespace stagewright;

namespace {

void make(benchmark::State& state, const std::string& name)
{
    const Shape shape{static_cast<int>(state.range(0)), static_cast<int>(state.range(1))};
    std::size_t ops = 0;
    for (auto _ : state) {
        const auto made = makeSchedule(name, shape);
        if (!made) return state.SkipWithError(made.error().message.c_str());
        benchmark::DoNotOptimize(made->order.data());
        ops = made->opCount();
    }
    state.counters["ops"] = static_cast<double>(ops);
}

void makeAndPlace(benchmark::State& state)
{
    const Shape shape{static_cast<int>(state.range(0)), static_cast<int>(state.range(1))};
    std::size_t ops = 0;
    for (auto _ : state) {
        const Schedule schedule = *makeSchedule("1f1b", shape);
        const CostModel costs = CostModel::uniform(schedule);
        const std::vector<Nanos> durations = durationsOf(schedule, costs);
        benchmark::DoNotOptimize(place(schedule, durations, costs.links)->makespan);
        ops = schedule.opCount();
    }
    state.counters["ops"] = static_cast<double>(ops);
}

void placeOnly(benchmark::State& state)
{
    const Schedule schedule =
        *makeSchedule("1f1b", {static_cast<int>(state.range(0)), static_cast<int>(state.range(1))});
    const CostModel costs = CostModel::uniform(schedule);
    const std::vector<Nanos> durations = durationsOf(schedule, costs);
    for (auto _ : state) benchmark::DoNotOptimize(place(schedule, durations, costs.links)->makespan);
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) *
                            static_cast<std::int64_t>(schedule.opCount()));
}

BENCHMARK(placeOnly)->Args({2048, 4096})->Unit(benchmark::kMillisecond);
BENCHMARK(makeAndPlace)->Args({2048, 4096})->Unit(benchmark::kMillisecond);

// For a shape on which all are possible: f, waves and groups as variantsOf() has them.
[[maybe_unused]] const bool registered = [] {
    for (const ScheduleInfo& info : allSchedules()) {
        if (info.searches) continue;
        for (std::string name : variantsOf(info)) {
            if (name == "interleaved-zb:group=2") name = "interleaved-zb:group=32"; // half of the ranks is the minimum
            benchmark::RegisterBenchmark(("make/" + name).c_str(), make, name)
                ->Args({64, 256})
                ->Unit(benchmark::kMillisecond);
        }
    }
    return true;
}();

} // namespace

BENCHMARK_MAIN();
