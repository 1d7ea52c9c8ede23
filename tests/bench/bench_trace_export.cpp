// Trace files of ten million spans: ZB-H1 on 64 ranks × 512 microbatches, 102 steps, data edges, memory. Spans per
// second, bytes per span, and memory beyond the run's. `written` also explains the bubbles; `spansAlone` is a run
// without idle time.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <fstream>
#include <string>

#include <malloc.h>

#include "schedules/library/registry.h"
#include "schedules/timeline/timeline_of.h"
#include "traces/export/chrome_json.h"
#include "traces/export/perfetto.h"

using namespace stagewright;

namespace {

// Steps of ZB-H1 one after the other.
Run stepsOf(int steps, double latency)
{
    const Schedule schedule = *makeSchedule("zb-h1", {64, 512});
    CostModel::UnitCosts units;
    units.latency = latency;
    const auto one = *simulatedTimeline(schedule, CostModel::uniform(schedule, units));
    TimelineBuilder builder(Provenance::Simulated, "model", one->ranks());
    builder.setUnits(one->timeUnit(), one->memoryUnit());
    builder.reserve(one->spans().size() * static_cast<std::size_t>(steps));
    for (int step = 0; step < steps; ++step) {
        const Nanos shift = step * (one->end() - one->begin());
        SpanId base = noSpan;
        for (const Track& track : one->tracks()) {
            const int number = builder.addTrack(track.rank, track.lane, track.name);
            for (Span span : one->spansOf(track)) {
                span.start += shift;
                span.end += shift;
                span.step = step;
                const SpanId id = builder.addSpan(number, span);
                if (base == noSpan) base = id;
            }
        }
        for (const Edge& edge : one->edges())
            builder.addEdge(base + edge.from, base + edge.to, edge.kind, edge.arrival + shift);
        for (MemoryEvent event : one->memory()) {
            event.time += shift;
            event.step = step;
            builder.addMemory(event);
        }
    }
    Run run;
    run.info.name = "zb-h1";
    run.info.microbatches = 512;
    run.timeline = *builder.build();
    return run;
}

// One step of one op after the other on each rank.
Run withoutIdle(std::int64_t spans)
{
    constexpr int ranks = 8;
    TimelineBuilder builder(Provenance::Measured, "wall", ranks);
    builder.reserve(static_cast<std::size_t>(spans));
    for (int rank = 0; rank < ranks; ++rank) {
        const int track = builder.addTrack(rank, Lane::Compute);
        for (std::int64_t i = 0; i < spans / ranks; ++i) {
            Span span;
            span.op = makeOp(static_cast<OpKind>(i % 3 == 0 ? 0 : i % 3 + 1), rank, static_cast<int>(i / 3 % 512));
            span.start = i * 1'000'000;
            span.end = span.start + 1'000'000;
            span.step = static_cast<int>(i / 1536);
            builder.addSpan(track, span);
        }
    }
    Run run;
    run.timeline = *builder.build();
    return run;
}

double peakMiB()
{
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
    return 0;
}

double residentMiB()
{
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmRSS:")) return std::stod(line.substr(6)) / 1024;
    return 0;
}

void resetPeak()
{
    malloc_trim(0);
    std::ofstream("/proc/self/clear_refs") << "5";
}

using Write = Result<TraceCounts> (*)(const Run&, const Sink&);

Result<TraceCounts> perfetto(const Run& run, const Sink& out) { return writePerfetto(run, out); }
Result<TraceCounts> chrome(const Run& run, const Sink& out) { return writeChromeJson(run, out); }

void write(benchmark::State& state, const Run& run, Write format)
{
    std::int64_t bytes = 0;
    TraceCounts counts;
    resetPeak();
    const double before = residentMiB();
    for (auto _ : state) {
        bytes = 0;
        counts = *format(run, [&bytes](std::string_view part) {
            bytes += static_cast<std::int64_t>(part.size());
            return true;
        });
    }
    const double spans = static_cast<double>(counts.spans);
    state.counters["beyond_run_MiB"] = peakMiB() - before;
    state.counters["bytes_per_span"] = static_cast<double>(bytes) / spans;
    state.counters["spans"] = spans;
    state.counters["bubbles"] = static_cast<double>(counts.bubbles);
    state.counters["flows"] = static_cast<double>(counts.flows);
    state.counters["samples"] = static_cast<double>(counts.counterSamples);
    state.SetItemsProcessed(state.iterations() * counts.spans);
}

void steps(benchmark::State& state, Write format)
{
    static const Run run = stepsOf(102, 0.1);
    write(state, run, format);
}
void spansAlone(benchmark::State& state, Write format)
{
    static const Run run = withoutIdle(10'000'000);
    write(state, run, format);
}

} // namespace

BENCHMARK_CAPTURE(steps, perfetto, perfetto)->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK_CAPTURE(spansAlone, perfetto, perfetto)->Unit(benchmark::kMillisecond)->Iterations(2);
BENCHMARK_CAPTURE(steps, chrome, chrome)->Unit(benchmark::kMillisecond)->Iterations(1);

BENCHMARK_MAIN();
