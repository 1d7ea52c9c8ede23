// The run file: spans per second in and out, and the first view of a run of ten million spans.
//   bench_store [--benchmark_filter=…]; files go to $TMPDIR or /tmp and are removed.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>

#include <unistd.h>

#include "recorded_runs.h"
#include "schedules/timeline/timeline.h"
#include "traces/store/run_file.h"

namespace {

using namespace stagewright;

std::string filePath(const char* name)
{
    return (std::filesystem::temp_directory_path() /
            ("stagewright-bench-" + std::to_string(::getpid()) + name + ".stagewright"))
        .string();
}

// Eight ranks, one compute lane each, ops with times as a clock gives them, CPU time known; one step.
std::shared_ptr<const Timeline> timelineOfSize(std::int64_t spans, int step = 0, Nanos begin = 0)
{
    constexpr int ranks = 8;
    std::mt19937 random(7);
    TimelineBuilder builder(Provenance::Measured, "wall", ranks);
    builder.reserve(static_cast<std::size_t>(spans));
    for (int rank = 0; rank < ranks; ++rank) {
        const int track = builder.addTrack(rank, Lane::Compute);
        Nanos time = begin;
        for (std::int64_t i = 0; i < spans / ranks; ++i) {
            Span span;
            const std::uint32_t draw = random();
            span.op = makeOp(static_cast<OpKind>(i % 3 == 0 ? 0 : i % 3 + 1), rank, static_cast<int>(i / 3 % 512));
            span.step = step;
            span.start = time + draw % 3000;
            span.end = span.start + 900'000 + draw / 4096 % 200'000;
            time = span.end;
            builder.addSpan(track, span, span.duration() - draw % 20'000);
        }
    }
    return builder.build().value();
}

const Timeline& tenMillion()
{
    static const auto timeline = timelineOfSize(10'000'000);
    return *timeline;
}

// A file with one run of this many spans, created once and removed at the end.
const std::string& fileWith(std::int64_t spans)
{
    struct Files {
        std::map<std::int64_t, std::string> paths;
        ~Files()
        {
            for (const auto& [size, path] : paths) std::filesystem::remove(path);
        }
    };
    static Files files;
    auto& path = files.paths[spans];
    if (path.empty()) {
        path = filePath("read");
        std::filesystem::remove(path);
        Run run;
        run.timeline = timelineOfSize(spans);
        auto file = RunFile::open(path, OpenMode::Create).value();
        file->add(run).value();
    }
    return path;
}

void addWholeRun(benchmark::State& state)
{
    const std::string path = filePath("add");
    Run run;
    run.timeline = std::shared_ptr<const Timeline>(&tenMillion(), [](const Timeline*) {});
    for (auto _ : state) {
        std::filesystem::remove(path);
        auto file = RunFile::open(path, OpenMode::Create).value();
        benchmark::DoNotOptimize(file->add(run).value());
        file.reset();
        state.PauseTiming();
        state.counters["bytes_per_span"] = static_cast<double>(std::filesystem::file_size(path)) / 1e7;
        state.ResumeTiming();
    }
    std::filesystem::remove(path);
    state.SetItemsProcessed(state.iterations() * 10'000'000);
}
BENCHMARK(addWholeRun)->Unit(benchmark::kMillisecond)->Iterations(3)->UseRealTime();

// As in a recording: a transaction per step, WAL, checkpointed at the end. range(0): spans per step.
void recordSteps(benchmark::State& state)
{
    const std::string path = filePath("record");
    const std::int64_t perStep = state.range(0);
    const std::int64_t steps = 4'000'000 / perStep;
    std::vector<std::shared_ptr<const Timeline>> timelines;
    for (std::int64_t step = 0; step < steps; ++step)
        timelines.push_back(timelineOfSize(perStep, static_cast<int>(step), step * perStep * 140'000));
    for (auto _ : state) {
        std::filesystem::remove(path);
        auto file = RunFile::open(path, OpenMode::Create).value();
        auto writer = file->begin(Run{}).value();
        bool ok = true;
        for (const auto& timeline : timelines) ok = ok && writer->append(*timeline, {{"loss", 1.0}}).has_value();
        if (!ok || !writer->finish().has_value()) state.SkipWithError("the steps could not be written");
    }
    std::filesystem::remove(path);
    state.SetItemsProcessed(state.iterations() * steps * perStep);
}
BENCHMARK(recordSteps)->Arg(400'000)->Arg(10'000)->Unit(benchmark::kMillisecond)->Iterations(3)->UseRealTime();

void firstView(benchmark::State& state)
{
    const std::string& path = fileWith(state.range(0));
    for (auto _ : state) { // opening included
        auto file = RunFile::open(path, OpenMode::Read).value();
        benchmark::DoNotOptimize(file->overview(1, 1600).value());
    }
}
BENCHMARK(firstView)->Arg(100'000)->Arg(10'000'000)->Unit(benchmark::kMillisecond)->UseRealTime();

void readWholeRun(benchmark::State& state)
{
    const std::string& path = fileWith(10'000'000);
    for (auto _ : state) {
        auto file = RunFile::open(path, OpenMode::Read).value();
        benchmark::DoNotOptimize(file->read(1).value());
    }
    state.SetItemsProcessed(state.iterations() * 10'000'000);
}
BENCHMARK(readWholeRun)->Unit(benchmark::kMillisecond)->Iterations(2)->UseRealTime();

// The end of a recording of range(0) steps of two ranks: its steps are put into their tables.
void closeRecording(benchmark::State& state)
{
    const std::string path = filePath("close");
    for (auto _ : state) {
        state.PauseTiming();
        std::filesystem::remove(path);
        samples::Recording recording(path, samples::RecordedShape{2, 4, 0});
        for (std::int64_t step = 0; step < state.range(0); ++step) (void)recording.append();
        state.ResumeTiming();
        if (!recording.finish()) state.SkipWithError("the run could not be closed");
    }
    std::filesystem::remove(path);
}
BENCHMARK(closeRecording)->Arg(12'000)->Arg(100'000)->Unit(benchmark::kMillisecond)->Iterations(1);

// Following a recording: opened, its newest step read. Must not depend on the number of steps.
void followUpdate(benchmark::State& state)
{
    static std::map<std::int64_t, std::unique_ptr<samples::Recording>> recordings;
    auto& recording = recordings[state.range(0)];
    const std::string path = filePath(("-follow-" + std::to_string(state.range(0))).c_str());
    if (!recording) {
        std::remove(path.c_str());
        recording = std::make_unique<samples::Recording>(path, samples::RecordedShape{16, 64, 0});
        for (int step = 0; step < state.range(0); ++step) (void)recording->append();
    }
    for (auto _ : state) {
        auto file = RunFile::open(path, OpenMode::Read).value();
        benchmark::DoNotOptimize(file->readSteps(1, static_cast<int>(state.range(0)) - 1).value());
    }
    state.SetItemsProcessed(state.iterations() * recording->spansPerStep());
    recording.reset();
    std::remove(path.c_str());
}
BENCHMARK(followUpdate)->Arg(10)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond)->UseRealTime();

// Every span of a recording of many steps, block by block.
void streamRun(benchmark::State& state)
{
    const std::string path = filePath("-stream");
    std::remove(path.c_str());
    const std::int64_t spans = samples::recordRun(path, {64, 32, 800}).value();
    for (auto _ : state) {
        auto file = RunFile::open(path, OpenMode::Read).value();
        std::int64_t read = 0;
        benchmark::DoNotOptimize(file->streamSpans(1,
                                                   [&](const RunFile::SpanBlock& block) {
                                                       read += static_cast<std::int64_t>(block.spans.size());
                                                       return true;
                                                   })
                                     .value());
        if (read != spans) state.SkipWithError("spans are missing");
    }
    state.SetItemsProcessed(state.iterations() * spans);
    auto file = RunFile::open(path, OpenMode::Read).value();
    const auto begin = std::chrono::steady_clock::now();
    (void)file->overview(1, 512, Lane::Compute).value();
    state.counters["overview_ms"] =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    std::remove(path.c_str());
}
BENCHMARK(streamRun)->Unit(benchmark::kMillisecond)->Iterations(3)->UseRealTime();

void countInSql(benchmark::State& state)
{
    const std::string& path = fileWith(10'000'000);
    auto file = RunFile::open(path, OpenMode::Read).value();
    for (auto _ : state)
        benchmark::DoNotOptimize(
            file->query("SELECT kind, sum(duration_ns) FROM spans WHERE run=1 AND rank=3 GROUP BY kind").value());
    state.SetItemsProcessed(state.iterations() * 10'000'000 / 8);
}
BENCHMARK(countInSql)->Unit(benchmark::kMillisecond)->Iterations(2)->UseRealTime();

} // namespace

BENCHMARK_MAIN();
