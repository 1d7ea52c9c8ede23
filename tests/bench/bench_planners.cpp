// Planners of `solve`: each example, the largest stored problem of each, and what a slider of COMET's page waits for.
// The counter memory is the largest size that the process had, so ask for one at a time.
#include <filesystem>
#include <fstream>
#include <sstream>

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "schedules/planner/problem.h"
#include "schedules/survey/choose.h"

using namespace stagewright;

namespace {

void solved(benchmark::State& state, const std::string& problem)
{
    for (auto _ : state) {
        const auto answer = solveProblem(problem);
        if (!answer) return state.SkipWithError(answer.error().message.c_str());
        benchmark::DoNotOptimize(answer->json.data());
    }
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    state.counters["memory"] = benchmark::Counter(static_cast<double>(used.ru_maxrss) * 1024,
                                                  benchmark::Counter::kDefaults, benchmark::Counter::kIs1024);
}

// A pin on the page Choose: 175 billion parameters on 64 devices asked again, its first ways simulated under every
// schedule.
void pinned(benchmark::State& state)
{
    LayoutQuestion layout;
    layout.model = *parseModelShape("gpt3-175b");
    layout.cluster = *parseCluster("64@a100");
    layout.samples = 64;
    if (!pin("t=8,p=8", layout)) return state.SkipWithError("no pin");
    WaysQuestion question;
    question.layout = layout;
    question.tried = static_cast<int>(state.range(0));
    for (auto _ : state) {
        const auto answer = waysSurvey(question);
        if (!answer) return state.SkipWithError(answer.error().message.c_str());
        benchmark::DoNotOptimize(answer->shown.data());
    }
}
BENCHMARK(pinned)->Arg(0)->Arg(4)->Unit(benchmark::kMillisecond);

void slider(benchmark::State& state)
{
    std::string problem = *exampleProblem("comet");
    double between = 31.25e9;
    for (auto _ : state) {
        between = between > 1e11 ? 1e10 : between * 1.01;
        problem = *withNumber(problem, "between", between);
        const auto answer = solveProblem(problem);
        if (!answer) return state.SkipWithError(answer.error().message.c_str());
    }
}

std::string textOf(const std::filesystem::path& path)
{
    std::ostringstream out;
    out << std::ifstream(path).rdbuf();
    return out.str();
}

} // namespace

int main(int argc, char** argv)
{
    for (const PlannerInfo& one : allPlanners())
        benchmark::RegisterBenchmark(("example/" + std::string(one.program)).c_str(), solved,
                                     *exampleProblem(one.program))
            ->Unit(benchmark::kMillisecond);
    for (const char* name :
         {"alpa_uneven_2x2", "cephalo_authors", "comet_1t", "intra_alpa_mlp12_b1024_h128_4x8_beta1_0p01",
          "jigsaw_mixed", "layer_recompute", "merak_rec_4", "reshard_case4", "reshard_case9"}) {
        std::string problem = textOf(std::filesystem::path(STAGEWRIGHT_SOURCE_DIR) / "tests/data/planners" /
                                     (std::string(name) + ".json"));
        if (const auto none = problem.find("\"program\":null"); none != std::string::npos)
            problem.replace(none, 14, "\"program\":\"intra_ilp\""); // whose answer is another program's
        benchmark::RegisterBenchmark(("stored/" + std::string(name)).c_str(), solved, problem)
            ->Unit(benchmark::kMillisecond);
    }
    benchmark::RegisterBenchmark("slider/comet", slider)->Unit(benchmark::kMillisecond);
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
