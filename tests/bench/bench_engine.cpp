// The engine's own speed: one training step on one rank, its parts, and the work of the optimizer. Use
// --benchmark_format=json for figures to keep.
//
//   bench_engine --serve HIDDEN HEADS LAYERS SEQ BATCH [bf16]   one step for every line on standard input, each
//                                                               answered with the CPU nanoseconds it took;
//                                                               compare_torch.py speaks with it
//   bench_engine --bf16 HIDDEN ROUNDS                         steps in bf16 and in fp32 in turn, CPU time, and their
//                                                               ratio
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <string>
#include <vector>

#include "engine/device/backend.h"
#include "engine/workload/gpt/gpt.h"

using namespace stagewright;

namespace {

std::int64_t cpuNanoseconds()
{
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

struct OneRank {
    ModelConfig model;
    int batch;
    OptimizerConfig optimizer;
    std::unique_ptr<Backend> backend;
    Allocator allocator;
    std::unique_ptr<StageModel> stage;
    std::vector<std::uint8_t> tokens, targets;
    int step = 0;

    OneRank(const ModelConfig& config, int microbatchSize, Precision precision = Precision::Default)
        : model(config), batch(microbatchSize)
    {
        DeviceOptions options;
        options.precision = precision;
        auto made = makeBackend("cpu", options);
        if (!made) {
            std::cerr << "bench_engine: " << made.error().message << "; " << made.error().remedy << '\n';
            std::exit(2);
        }
        backend = std::move(*made);
        const auto workload = std::make_shared<const Gpt>(model);
        stage =
            std::move(*makeStage(*workload, *backend, {(*slicesOf(*workload, 1))[0], batch, 1, optimizer}, allocator));
        tokens.resize(static_cast<std::size_t>(batch * model.sequence));
        targets.resize(tokens.size());
        workload->sample(1, 0, 0, batch, tokens, targets);
    }
    void forward() { stage->forward(0, {}, tokens, targets); }
    void wholeStep()
    {
        stage->zeroGradients();
        forward();
        stage->inputGrad(0, {});
        stage->weightGrad(0);
        stage->optimizerStep(optimizer, ++step, 1.0F);
    }
};

ModelConfig shape(int hidden) { return {.layers = 4, .hidden = hidden, .heads = hidden / 64, .sequence = 128}; }

void reportSpeed(benchmark::State& state, const ModelConfig& model, int batch, double passes)
{
    // 2 FLOPs per weight and token, and the causal half of attention; backward is two more passes.
    const double hidden = model.hidden;
    const double perToken = model.layers * (24 * hidden * hidden + 2 * hidden * model.sequence) + 512 * hidden;
    state.counters["flops"] =
        benchmark::Counter(passes * perToken * batch * model.sequence, benchmark::Counter::kIsIterationInvariantRate);
}

void BM_Step(benchmark::State& state)
{
    OneRank rank(shape(static_cast<int>(state.range(0))), 4);
    rank.wholeStep();
    for (auto _ : state) rank.wholeStep();
    reportSpeed(state, rank.model, rank.batch, 3);
}

void BM_Forward(benchmark::State& state)
{
    OneRank rank(shape(static_cast<int>(state.range(0))), 4);
    for (auto _ : state) {
        rank.forward();
        state.PauseTiming();
        rank.stage->dropMicrobatches();
        state.ResumeTiming();
    }
    reportSpeed(state, rank.model, rank.batch, 1);
}

void BM_InputGrad(benchmark::State& state)
{
    OneRank rank(shape(static_cast<int>(state.range(0))), 4);
    for (auto _ : state) {
        state.PauseTiming();
        rank.forward();
        state.ResumeTiming();
        rank.stage->inputGrad(0, {});
        state.PauseTiming();
        rank.stage->dropMicrobatches();
        state.ResumeTiming();
    }
    reportSpeed(state, rank.model, rank.batch, 1);
}

void BM_WeightGrad(benchmark::State& state)
{
    OneRank rank(shape(static_cast<int>(state.range(0))), 4);
    for (auto _ : state) {
        state.PauseTiming();
        rank.forward();
        rank.stage->inputGrad(0, {});
        state.ResumeTiming();
        rank.stage->weightGrad(0);
    }
    reportSpeed(state, rank.model, rank.batch, 1);
}

void BM_Optimizer(benchmark::State& state)
{
    OneRank rank(shape(static_cast<int>(state.range(0))), 4);
    for (auto _ : state) rank.stage->optimizerStep(rank.optimizer, ++rank.step, 1.0F);
}

// Recomputation of all layers, to compare with BM_Forward.
void BM_Recompute(benchmark::State& state)
{
    OneRank rank(shape(static_cast<int>(state.range(0))), 4);
    for (auto _ : state) {
        state.PauseTiming();
        rank.stage->forwardForRecompute(0, {}, rank.tokens, rank.targets);
        state.ResumeTiming();
        rank.stage->recompute(0);
        state.PauseTiming();
        rank.stage->dropMicrobatches();
        state.ResumeTiming();
    }
    reportSpeed(state, rank.model, rank.batch, 1);
}

// The weight gradients of eight microbatches of one sample: one by one (0), or stacked in one op (1).
void BM_WeightGradOver(benchmark::State& state)
{
    OneRank rank(shape(256), 1);
    std::vector<Part> parts;
    for (int j = 0; j < 8; ++j) parts.emplace_back(j);
    for (auto _ : state) {
        state.PauseTiming();
        for (const Part& part : parts) {
            rank.stage->forward(part, {}, rank.tokens, rank.targets);
            rank.stage->inputGrad(part, {});
        }
        state.ResumeTiming();
        if (state.range(0) == 1) {
            rank.stage->weightGradOver(parts);
        } else {
            for (const Part& part : parts) rank.stage->weightGrad(part);
        }
    }
    reportSpeed(state, rank.model, rank.batch, 8);
}

// F, I and W of a sequence of 512 in this many slices; of one sample, so that a slice's bytes are contiguous.
void BM_Slices(benchmark::State& state)
{
    ModelConfig model = shape(256);
    model.sequence = 512;
    OneRank rank(model, 1);
    const auto count = static_cast<int>(state.range(0));
    const std::vector<int> lengths(static_cast<std::size_t>(count), model.sequence / count);
    rank.stage->setSlices(lengths);
    const auto length = static_cast<std::size_t>(lengths.front());
    for (auto _ : state) {
        for (int i = 0; i < count; ++i) {
            const std::size_t from = static_cast<std::size_t>(i) * length;
            rank.stage->forward({0, static_cast<std::int16_t>(i), 0}, {}, std::span(rank.tokens).subspan(from, length),
                                std::span(rank.targets).subspan(from, length));
        }
        for (int i = count; i-- > 0;) {
            const Part part(0, static_cast<std::int16_t>(i), 0);
            rank.stage->inputGrad(part, {});
            rank.stage->weightGrad(part);
        }
    }
    reportSpeed(state, rank.model, rank.batch, 3);
}

void BM_KeepVersion(benchmark::State& state)
{
    OneRank rank(shape(static_cast<int>(state.range(0))), 4);
    for (auto _ : state) rank.stage->keepVersion(0);
}

void BM_KeepPredicted(benchmark::State& state)
{
    OneRank rank(shape(static_cast<int>(state.range(0))), 4);
    rank.wholeStep();
    for (auto _ : state) rank.stage->keepPredicted(0, rank.optimizer, 1, 3.0);
}

BENCHMARK(BM_Step)->Arg(128)->Arg(256)->Arg(512)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Forward)->Arg(256)->Arg(512)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_InputGrad)->Arg(256)->Arg(512)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_WeightGrad)->Arg(256)->Arg(512)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Optimizer)->Arg(256)->Arg(512)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Recompute)->Arg(256)->Arg(512)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_WeightGradOver)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Slices)->Arg(1)->Arg(2)->Arg(4)->Arg(8)->Arg(32)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_KeepVersion)->Arg(256)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_KeepPredicted)->Arg(256)->Unit(benchmark::kMillisecond);

// Rounds alternate in which goes first; the ratio is of the medians, its spread the quartiles of the rounds' own
// ratios.
int compareBf16(int hidden, int rounds)
{
    if (hidden < 64 || hidden % 64 != 0 || rounds < 1) {
        std::cerr << "bench_engine: --bf16 HIDDEN ROUNDS, a multiple of 64 and at least 1\n";
        return 2;
    }
    OneRank bf16(shape(hidden), 4, Precision::Bf16);
    OneRank wide(shape(hidden), 4);
    const auto timed = [](OneRank& rank) {
        const std::int64_t start = cpuNanoseconds();
        rank.wholeStep();
        return 1e-6 * static_cast<double>(cpuNanoseconds() - start);
    };
    std::vector<double> bf16Times, wideTimes, ratios;
    for (int round = -2; round < rounds; ++round) {
        const bool first = round % 2 == 0;
        const double before = first ? timed(bf16) : timed(wide);
        const double after = first ? timed(wide) : timed(bf16);
        if (round < 0) continue; // warm-up
        bf16Times.push_back(first ? before : after);
        wideTimes.push_back(first ? after : before);
        ratios.push_back(bf16Times.back() / wideTimes.back());
    }
    const auto at = [](std::vector<double>& values, std::size_t quarter) {
        std::sort(values.begin(), values.end());
        return values[std::min(values.size() - 1, quarter * values.size() / 4)];
    };
    std::cout << "hidden " << hidden << "  bf16 " << at(bf16Times, 2) << " ms  fp32 " << at(wideTimes, 2)
              << " ms  ratio " << at(bf16Times, 2) / at(wideTimes, 2) << "  quartiles " << at(ratios, 1) << " … "
              << at(ratios, 3) << "  losses " << bf16.stage->loss(0) << ' ' << wide.stage->loss(0) << "  (" << rounds
              << " steps each in turn, CPU time)\n";
    for (const auto& [name, value] : wide.backend->environment())
        if (name.starts_with("products") || name == "onednn" || name == "blas_kernel" || name == "cpu")
            std::cout << "  " << name << ": " << value << '\n';
    return 0;
}

int serve(int arguments, char** argument)
{
    const ModelConfig model{.layers = std::atoi(argument[2]),
                            .hidden = std::atoi(argument[0]),
                            .heads = std::atoi(argument[1]),
                            .sequence = std::atoi(argument[3])};
    if (const auto usable = checkModelConfig(model); !usable) {
        std::cerr << "bench_engine: " << usable.error().message << '\n';
        return 2;
    }
    const bool bf16 = arguments > 5 && std::string_view(argument[5]) == "bf16";
    OneRank rank(model, std::max(1, std::atoi(argument[4])), bf16 ? Precision::Bf16 : Precision::Default);
    for (std::string line; std::getline(std::cin, line);) {
        const std::int64_t start = cpuNanoseconds();
        rank.wholeStep();
        std::cout << cpuNanoseconds() - start << ' ' << rank.stage->loss(0) << std::endl;
    }
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    if ((argc == 7 || argc == 8) && std::string_view(argv[1]) == "--serve") return serve(argc - 2, argv + 2);
    if (argc == 4 && std::string_view(argv[1]) == "--bf16") return compareBf16(std::atoi(argv[2]), std::atoi(argv[3]));
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
