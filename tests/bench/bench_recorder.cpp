// Cost of recording: an event without the thread's CPU clock (≤ 30 ns), an op with it (≤ 300 ns), and a whole
// training step's recording as a share of the step's CPU time (≤ 1 %). Timed in batches; emptying the buffers is not
// counted.
#include <benchmark/benchmark.h>

#include "engine/training/training.h"
#include "profiler/record/rank_recorder.h"
#include "schedules/check/checked_schedule.h"
#include "schedules/library/registry.h"
#include "schedules/model/kinds.h"

using namespace stagewright;

namespace {

constexpr int batch = 2000;

template <typename Body>
void inBatches(benchmark::State& state, RankRecorder& recorder, Body&& body)
{
    for (auto _ : state) {
        const Nanos begin = monotonicNow();
        for (int i = 0; i < batch; ++i) body(i);
        const Nanos end = monotonicNow();
        state.SetIterationTime(static_cast<double>(end - begin) * 1e-9);
        benchmark::DoNotOptimize(recorder.take());
    }
}

void perUnit(benchmark::State& state, const char* name, double perIteration)
{
    state.counters[name] =
        benchmark::Counter(perIteration, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

// An op is two events.
void eventWithoutCpuClock(benchmark::State& state)
{
    RankRecorder recorder(4 * batch, false);
    const Op op = makeOp(OpKind::Forward, 1, 3);
    inBatches(state, recorder, [&](int i) {
        recorder.opBegin(op, i);
        recorder.opEnd(op, i);
    });
    perUnit(state, "per_event", 2.0 * batch);
}

void messageEvent(benchmark::State& state)
{
    RankRecorder recorder(4 * batch, true);
    inBatches(state, recorder, [&](int i) { recorder.sent({i, 1, false}, 5); });
    perUnit(state, "per_event", batch);
}

void allocAndFree(benchmark::State& state)
{
    RankRecorder recorder(4 * batch, true);
    inBatches(state, recorder, [&](int) {
        recorder.memoryChanged(MemoryCategory::Activations, 1, 3, 4096);
        recorder.memoryChanged(MemoryCategory::Activations, 1, 3, -4096);
    });
    perUnit(state, "per_event", 2.0 * batch);
}

void opWithCpuClock(benchmark::State& state)
{
    RankRecorder recorder(4 * batch, true);
    const Op op = makeOp(OpKind::Forward, 1, 3);
    inBatches(state, recorder, [&](int i) {
        recorder.opBegin(op, i);
        recorder.opEnd(op, i);
    });
    perUnit(state, "per_op", batch);
}

// After a receive the CPU clock is also read when the op starts, so that the copy does not count for the op.
void receiveAndOpWithCpuClock(benchmark::State& state)
{
    RankRecorder recorder(16 * batch, true);
    const Op op = makeOp(OpKind::Forward, 1, 3);
    inBatches(state, recorder, [&](int i) {
        recorder.receiveBegin({i, 1, false});
        recorder.receiveEnd({i, 1, false}, 4096);
        recorder.opBegin(op, i);
        recorder.opEnd(op, i);
        recorder.sent({i, 2, false}, 5);
    });
    perUnit(state, "per_op", batch);
}

// The default model under ZB-H1, p=4, m=8: every op with receive, wait, eight memory changes and a send.
void shareOfAStep(benchmark::State& state)
{
    Shape shape;
    auto training = Training::create(*CheckedSchedule::of(*makeSchedule("zb-h1", shape)), [] {
        TrainingOptions options;
        options.clock = ClockMode::Virtual;
        return options;
    }());
    if (!training) return state.SkipWithError(training.error().message.c_str());
    double stepCpu = 0;
    double ops = 0;
    for (int step = 0; step < 3; ++step) {
        auto outcome = (*training)->step({});
        if (!outcome) return state.SkipWithError(outcome.error().message.c_str());
        stepCpu = ops = 0;
        for (const Span& span : outcome->timeline->spans()) {
            if (!isBusy(span.op.kind) && span.op.kind != OpKind::Optimizer) continue;
            stepCpu += static_cast<double>(span.duration());
            ops += 1;
        }
    }
    RankRecorder recorder(32 * batch, true);
    const Op op = makeOp(OpKind::InputGrad, 1, 3);
    double recorded = 0;
    double iterations = 0;
    for (auto _ : state) {
        const Nanos begin = monotonicNow();
        for (int i = 0; i < static_cast<int>(ops); ++i) {
            recorder.waitBegin({3, 1, true});
            recorder.receiveBegin({3, 1, true});
            recorder.memoryChanged(MemoryCategory::Communication, 1, 3, 4096);
            recorder.receiveEnd({3, 1, true}, 4096);
            recorder.opBegin(op, i);
            for (int k = 0; k < 4; ++k) {
                recorder.memoryChanged(MemoryCategory::Activations, 1, 3, 4096);
                recorder.memoryChanged(MemoryCategory::Workspace, 1, 3, k % 2 ? -4096 : 4096);
            }
            recorder.opEnd(op, i);
            recorder.sent({3, 0, true}, 5);
        }
        const Nanos end = monotonicNow();
        recorded += static_cast<double>(end - begin);
        iterations += 1;
        state.SetIterationTime(static_cast<double>(end - begin) * 1e-9);
        benchmark::DoNotOptimize(recorder.take());
    }
    state.counters["share_of_step_percent"] = 100 * recorded / iterations / stepCpu;
    state.counters["ops"] = ops;
}

BENCHMARK(eventWithoutCpuClock)->UseManualTime();
BENCHMARK(messageEvent)->UseManualTime();
BENCHMARK(allocAndFree)->UseManualTime();
BENCHMARK(opWithCpuClock)->UseManualTime();
BENCHMARK(receiveAndOpWithCpuClock)->UseManualTime();
BENCHMARK(shareOfAStep)->UseManualTime()->Unit(benchmark::kMicrosecond);

} // namespace

BENCHMARK_MAIN();
