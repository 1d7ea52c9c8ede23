// Replicas that share state against replicas that don't: time of a step, bytes that a rank takes and what it holds at
// most, by the engine's own count. Levels 0 to 3 are ZeRO's; unshared: each replica has everything, gradients are
// summed at the step's end.
//
//   bench_shards --benchmark_format=json
#include <benchmark/benchmark.h>

#include <algorithm>

#include "engine/training/training.h"
#include "engine/workload/gpt/gpt.h"
#include "schedules/check/checked_schedule.h"
#include "schedules/library/registry.h"
#include "schedules/model/mesh.h"
#include "schedules/model/shard_rules.h"

using namespace stagewright;

namespace {

constexpr int unshared = -1;

void step(benchmark::State& state)
{
    const int level = static_cast<int>(state.range(0));
    const int replicas = static_cast<int>(state.range(1));
    auto schedule = makeSchedule("1f1b", Shape(1, 4));
    if (schedule) schedule = overReplicas(*schedule, replicas);
    TrainingOptions options;
    options.workload = std::make_shared<const Gpt>(ModelConfig{4, 256, 4, 128, 256});
    options.microbatchSize = 4;
    options.clock = ClockMode::Wall;
    if (schedule && level != unshared) {
        options.sharding.level = static_cast<ShardLevel>(level);
        schedule = addShardOps(*schedule, options.sharding.level, {});
    }
    const auto checked = schedule ? CheckedSchedule::of(*schedule) : tl::unexpected(schedule.error());
    auto training = checked ? Training::create(*checked, options) : tl::unexpected(checked.error());
    if (!training) return state.SkipWithError(training.error().message.c_str());
    RankTraffic traffic;
    for (auto _ : state) {
        auto outcome = (*training)->step({});
        if (!outcome) return state.SkipWithError(outcome.error().message.c_str());
        state.SetIterationTime(static_cast<double>(outcome->stepTime) * 1e-9);
        traffic = outcome->traffic.front();
    }
    const auto peak = [&](MemoryCategory category) {
        const std::vector<Bytes> peaks = (*training)->peak(category);
        return static_cast<double>(*std::max_element(peaks.begin(), peaks.end()));
    };
    state.counters["gathered_bytes"] = static_cast<double>(traffic.gathered);
    state.counters["reduced_bytes"] = static_cast<double>(traffic.reduced);
    state.counters["weights"] = peak(MemoryCategory::Weights);
    state.counters["gathered"] = peak(MemoryCategory::Gathered);
    state.counters["gradients"] = peak(MemoryCategory::Gradients);
    state.counters["buckets"] = peak(MemoryCategory::Buckets);
    state.counters["optimizer"] = peak(MemoryCategory::Optimizer);
}
BENCHMARK(step)
    ->ArgNames({"level", "replicas"})
    ->ArgsProduct({{unshared, 0, 1, 2, 3}, {2}})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

} // namespace

BENCHMARK_MAIN();
