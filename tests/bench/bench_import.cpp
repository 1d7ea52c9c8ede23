// Reading large JSON traces: megabytes per second of one file, plain and gzip, and the memory used beside the kept
// data.
//   bench_import [--megabytes N] [--only few|gzip|kernels] [--cancels N]; files go to $TMPDIR or /tmp and are removed.
//   bench_import --ranks N [--megabytes M]: a folder of N ranks of M MB each, imported as a job into a run file.
// --cancels: creating the run is cancelled N times, at moments spread over it; prints the latest return.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <unistd.h>

#include "tests/bench/process_use.h"
#include "traces/import/import.h"
#include "traces/import/kineto/kineto_json.h"
#include "traces/store/add_runs.h"

namespace {

using namespace stagewright;

// Written as PyTorch's profiler writes: launches, kernels, operators and flows, and ranges of a 1F1B rank.
void writeTrace(const std::string& path, std::int64_t bytes, bool kernels, int rank = 0, int ranks = 1)
{
    std::FILE* file = std::fopen(path.c_str(), "wb");
    if (file == nullptr) std::abort();
    std::int64_t written = std::fprintf(file,
                                        "{\n  \"schemaVersion\": 1,\n  \"distributedInfo\": {\"backend\": \"nccl\", "
                                        "\"rank\": %d, \"world_size\": %d},\n  \"traceEvents\": [\n",
                                        rank, ranks);
    for (std::int64_t i = 0; written < bytes; ++i) {
        const double at = 1000.0 + static_cast<double>(i) * 20.125;
        if (i % 1000 == 0)
            written += std::fprintf(file,
                                    "  {\n    \"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"PP:%d%c%d\", "
                                    "\"pid\": 77, \"tid\": 77,\n    \"ts\": %.3f, \"dur\": %.3f,\n    \"args\": {\n    "
                                    "  \"External id\": 1, \"Record function id\": 0\n    }\n  },\n",
                                    rank, i / 8000 % 2 == 0 ? 'F' : 'B', static_cast<int>(i / 1000 % 8), at, 19'000.0);
        written +=
            std::fprintf(file,
                         "  {\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::addmm\", \"pid\": 77, "
                         "\"tid\": 77,\n    \"ts\": %.3f, \"dur\": 12.250,\n    \"args\": {\n      \"External id\": "
                         "%lld,\"Record function id\": 0, \"Sequence number\": 12, \"Fwd thread id\": 0, \"Ev Idx\": "
                         "%lld, \"Input Dims\": [[4096], [2048, 4096], [4096, 4096], [], []]\n    }\n  },\n",
                         at, static_cast<long long>(i), static_cast<long long>(i));
        if (!kernels && i % 64 != 0) continue;
        written += std::fprintf(file,
                                "  {\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", "
                                "\"pid\": 77, \"tid\": 77,\n    \"ts\": %.3f, \"dur\": 4.100,\n    \"args\": {\n      "
                                "\"External id\": %lld, \"cbid\": 211, \"correlation\": %lld\n    }\n  },\n",
                                at + 3, static_cast<long long>(i), static_cast<long long>(i + 1));
        written += std::fprintf(file,
                                "  {\n    \"ph\": \"s\", \"id\": %lld, \"pid\": 77, \"tid\": 77, \"ts\": %.3f,\n    "
                                "\"cat\": \"ac2g\", \"name\": \"ac2g\"\n  },\n",
                                static_cast<long long>(i + 1), at + 3);
        written += std::fprintf(
            file,
            "  {\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"void "
            "at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, "
            "at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, at::detail::Array<char*, "
            "3>)\", \"pid\": 0, \"tid\": %d,\n    \"ts\": %.3f, \"dur\": 17.500,\n    \"args\": {\n      \"External "
            "id\": %lld, \"queued\": 0, \"device\": 0, \"context\": 1, \"stream\": %d, \"correlation\": %lld, "
            "\"registers per thread\": 32, \"shared memory\": 0, \"blocks per SM\": 7.5, \"warps per SM\": 30, "
            "\"grid\": [1024, 1, 1], \"block\": [128, 1, 1], \"est. achieved occupancy %%\": 47\n    }\n  },\n",
            i % 8 == 0 ? 20 : 7, at + 9, static_cast<long long>(i), i % 8 == 0 ? 20 : 7, static_cast<long long>(i + 1));
    }
    std::fprintf(file, "  {\n    \"name\": \"Record Window End\", \"ph\": \"i\", \"s\": \"g\", \"pid\": \"\", \"tid\": "
                       "\"\", \"ts\": 1.0\n  }\n  ],\n  \"traceName\": \"bench\",\n  \"displayTimeUnit\": \"ms\",\n  "
                       "\"baseTimeNanoseconds\": 1700000000000000000\n}\n");
    if (std::fclose(file) != 0) std::abort();
}

double since(std::chrono::steady_clock::time_point begin)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

ForeignFile readAll(const std::string& path)
{
    auto source = ByteSource::open(path);
    if (!source) std::abort();
    auto file = readJsonTrace(**source, path, {}, {});
    if (!file) std::abort();
    return std::move(*file);
}

// How late the creation of a run that takes `seconds` in total returns after a cancel.
void measureCancels(const std::string& path, int times, double seconds)
{
    double latest = 0;
    double sum = 0;
    int cut = 0;
    for (int i = 0; i < times; ++i) {
        ForeignFile file = readAll(path);
        std::stop_source stop;
        Progress progress;
        progress.stop = stop.get_token();
        std::chrono::steady_clock::time_point asked;
        std::jthread asker([&, after = seconds * (i + 0.5) / times] {
            std::this_thread::sleep_for(std::chrono::duration<double>(after));
            asked = std::chrono::steady_clock::now();
            stop.request_stop();
        });
        const auto made = assemble(std::move(file.ranks), "bench", {}, progress);
        const auto returned = std::chrono::steady_clock::now();
        asker.join();
        if (made) continue; // it was done before
        const double late = std::chrono::duration<double>(returned - asked).count();
        ++cut;
        sum += late;
        latest = std::max(latest, late);
    }
    std::printf("%-28s cancelled %d times of %d: back after %.0f ms in the mean, %.0f ms at the latest\n", "", cut,
                times, cut > 0 ? sum / cut * 1e3 : 0.0, latest * 1e3);
}

void measure(const char* what, const std::string& path, double megabytes, int cancels)
{
    const double before = bench::peakMebibytes();
    const auto begin = std::chrono::steady_clock::now();
    const double cpu = bench::cpuSeconds();
    ForeignFile file = readAll(path);
    const double readCpu = bench::cpuSeconds() - cpu;
    const double readTime = since(begin);
    const ForeignRank& rank = file.ranks[0];
    const double kept =
        static_cast<double>(rank.device.size() * sizeof(DeviceSpan) + rank.launches.size() * sizeof(Launch) +
                            rank.annotations.size() * sizeof(ForeignSpan)) /
        1048576;
    const double grown = bench::peakMebibytes() - before;
    std::printf("%-28s read %6.0f MB: %6.0f MB/s by the clock, %6.0f MB/s CPU; %lld events, kept %.0f MiB, peak %.0f "
                "MiB, %.0f MiB beside what is kept\n",
                what, megabytes, megabytes / readTime, megabytes / readCpu, static_cast<long long>(rank.events), kept,
                grown, grown - kept);
    std::fflush(stdout);
    const double cpu2 = bench::cpuSeconds();
    const auto makeBegin = std::chrono::steady_clock::now();
    auto runs = assemble(std::move(file.ranks), "bench", {});
    const double makeTime = since(makeBegin);
    if (!runs) std::abort();
    const Timeline& timeline = *runs->front().run.timeline;
    const double result = static_cast<double>(timeline.spans().size() * sizeof(Span) +
                                              timeline.edges().size() * (sizeof(Edge) + sizeof(std::uint32_t))) /
                          1048576;
    const double peak = bench::peakMebibytes() - before;
    std::printf("%-28s made a run of %zu spans and %zu edges in %.2f s CPU; peak of reading and making %.0f MiB, %.0f "
                "MiB beside the run's %.0f MiB\n",
                "", timeline.spans().size(), timeline.edges().size(), bench::cpuSeconds() - cpu2, peak, peak - result,
                result);
    if (cancels > 0) measureCancels(path, cancels, makeTime);
}

// A job as a user imports it: read, joined, stored.
int measureJob(int ranks, std::int64_t megabytes)
{
    const auto folder =
        std::filesystem::temp_directory_path() / ("stagewright-bench-job-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder / "job");
    double size = 0;
    for (int rank = 0; rank < ranks; ++rank) {
        const std::string path = (folder / "job" / ("rank" + std::to_string(rank) + ".json")).string();
        writeTrace(path, megabytes * 1'000'000, true, rank, ranks);
        size += static_cast<double>(std::filesystem::file_size(path)) / 1e6;
    }
    const double cpu = bench::cpuSeconds();
    const auto begin = std::chrono::steady_clock::now();
    auto imported = importTraces({(folder / "job").string()}, {});
    if (!imported || imported->runs.size() != 1) return 1;
    const double readCpu = bench::cpuSeconds() - cpu, readTime = since(begin);
    const std::size_t spans = imported->runs[0].run.timeline->spans().size();
    const Run* const run = &imported->runs[0].run;
    const auto ids = addRuns((folder / "job.stagewright").string(), {&run, 1});
    std::printf("%d ranks, %.0f MB: %zu spans; read and joined in %.1f s CPU (%.1f s by the clock), stored as well "
                "%.1f s CPU (%.1f s); peak %.0f MiB\n",
                ranks, size, spans, readCpu, readTime, bench::cpuSeconds() - cpu, since(begin), bench::peakMebibytes());
    std::filesystem::remove_all(folder);
    return ids ? 0 : 1;
}

} // namespace

int main(int argc, char** argv)
{
    std::int64_t megabytes = 400;
    std::string only;
    int cancels = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (std::strcmp(argv[i], "--megabytes") == 0) megabytes = std::atoll(argv[i + 1]);
        if (std::strcmp(argv[i], "--only") == 0) only = argv[i + 1];
        if (std::strcmp(argv[i], "--ranks") == 0)
            return measureJob(std::atoi(argv[i + 1]), argc > i + 3 ? std::atoll(argv[i + 3]) : megabytes);
        if (std::strcmp(argv[i], "--cancels") == 0) cancels = std::atoi(argv[i + 1]);
    }
    const auto wanted = [&only](const char* what) { return only.empty() || only == what; };
    const auto folder = std::filesystem::temp_directory_path();
    const std::string path = (folder / ("stagewright-bench-" + std::to_string(::getpid()) + ".json")).string();
    // The smallest first: the peak of a process only grows.
    for (const bool kernels : {false, true}) {
        if (kernels ? !wanted("kernels") : !wanted("few") && !wanted("gzip")) continue;
        writeTrace(path, megabytes * 1'000'000, kernels);
        const double size = static_cast<double>(std::filesystem::file_size(path)) / 1e6;
        if (kernels || wanted("few")) measure(kernels ? "kernels in every op" : "few kernels", path, size, cancels);
        if (!kernels && wanted("gzip")) {
            const std::string pack = "gzip -k -1 " + path;
            if (std::system(pack.c_str()) == 0) measure("few kernels, gzip", path + ".gz", size, cancels);
            std::filesystem::remove(path + ".gz");
        }
        std::filesystem::remove(path);
    }
    return 0;
}
