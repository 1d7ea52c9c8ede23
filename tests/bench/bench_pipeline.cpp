// Accuracy of the clocks, on two ranks and eight microbatches of the CPU's layers, all trainings stepped in
// turn:
//   speed_up_of_ideal   1F1B on two ranks against one rank, wall time, over the ideal m·p/(m+p−1)   (target: ≥ 0.95)
//   wall_over_virtual   step time of the wall clock over the virtual clock's                          (target: 1 ±
//   0.03)
// Medians over the steps. They mean something on idle cores only: idle_cores says how many there were before and after.
// On a busy machine quickest_… (of the quickest step of each) are more accurate.
#include <benchmark/benchmark.h>

#include <algorithm>

#include "engine/device/machine.h"
#include "engine/training/training.h"
#include "engine/workload/gpt/gpt.h"
#include "schedules/check/checked_schedule.h"
#include "schedules/library/registry.h"
#include "schedules/model/kinds.h"

using namespace stagewright;

namespace {

constexpr int microbatches = 8;
constexpr int warmup = 2;
constexpr int measured = 15;

double median(std::vector<double> values)
{
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
}

// From the first to the last busy span: the optimizer is not part of a pipeline.
double window(const Timeline& timeline)
{
    Nanos first = timeline.end();
    Nanos last = 0;
    for (const Span& span : timeline.spans()) {
        if (!isBusy(span.op.kind)) continue;
        first = std::min(first, span.start);
        last = std::max(last, span.end);
    }
    return static_cast<double>(last - first);
}

Result<std::unique_ptr<Training>> training(int ranks, ClockMode clock, int hidden)
{
    Shape shape;
    shape.ranks = ranks;
    shape.microbatches = microbatches;
    TrainingOptions options;
    options.workload = std::make_shared<const Gpt>(ModelConfig{8, hidden, 4, 128, 256});
    options.clock = clock;
    return Training::create(*CheckedSchedule::of(*makeSchedule("1f1b", shape)), options);
}

void twoRanks(benchmark::State& state)
{
    const int hidden = static_cast<int>(state.range(0));
    const int idleBefore = idleCores();
    auto one = training(1, ClockMode::Wall, hidden);
    auto two = training(2, ClockMode::Wall, hidden);
    auto projected = training(2, ClockMode::Virtual, hidden);
    if (!one || !two || !projected) return state.SkipWithError("no training");
    std::vector<double> alone, wall, virtualTime, speedUps, clocks;
    double contention = 0;
    double leastContention = 1;
    for (auto _ : state) {
        for (int step = 0; step < warmup + measured; ++step) {
            auto a = (*one)->step({});
            auto b = (*two)->step({});
            auto c = (*projected)->step({});
            if (!a || !b || !c) return state.SkipWithError("a step failed");
            if (step < warmup) continue;
            alone.push_back(window(*a->timeline));
            wall.push_back(window(*b->timeline));
            virtualTime.push_back(window(*c->timeline));
            contention = std::max(contention, b->contention);
            leastContention = std::min(leastContention, b->contention);
        }
    }
    for (std::size_t i = 0; i < wall.size(); ++i) {
        speedUps.push_back(alone[i] / wall[i]);
        clocks.push_back(wall[i] / virtualTime[i]);
    }
    const double ideal = 2.0 * microbatches / (microbatches + 1);
    state.counters["speed_up"] = median(speedUps);
    state.counters["speed_up_of_ideal"] = median(speedUps) / ideal;
    state.counters["wall_over_virtual"] = median(clocks);
    // The quickest steps of each: the quiet moments of a noisy machine.
    const auto least = [](const std::vector<double>& values) {
        return *std::min_element(values.begin(), values.end());
    };
    state.counters["quickest_speed_up_of_ideal"] = least(alone) / least(wall) / ideal;
    state.counters["quickest_wall_over_virtual"] = least(wall) / least(virtualTime);
    state.counters["least_contention"] = leastContention;
    state.counters["wall_ms"] = median(wall) / 1e6;
    state.counters["virtual_ms"] = median(virtualTime) / 1e6;
    state.counters["one_rank_ms"] = median(alone) / 1e6;
    state.counters["worst_contention"] = contention;
    state.counters["idle_cores_before"] = idleBefore;
    state.counters["idle_cores_after"] = idleCores();
}

BENCHMARK(twoRanks)->Arg(128)->Arg(256)->Iterations(1)->Unit(benchmark::kMillisecond)->UseRealTime();

} // namespace

BENCHMARK_MAIN();
