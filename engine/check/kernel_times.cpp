#include "engine/check/kernel_times.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "engine/workload/references.h"
#include "profiler/record/clock.h"
#include "profiler/record/device_clock.h"
#include "schedules/base/median.h"

namespace stagewright {

namespace {

constexpr Nanos batchTime = 3'000'000; // calls of one batch take about so long
constexpr int mostCalls = 200;
constexpr int batches = 7;

double timeOf(const TimedKernel& one, Memory& memory, const std::stop_token& stop)
{
    DeviceClock* clock = memory.clock();
    const auto callsTake = [&](int calls) {
        const std::int64_t from = clock ? clock->stamp() : threadCpuNow();
        for (int i = 0; i < calls; ++i) one.call();
        const std::int64_t to = clock ? clock->stamp() : threadCpuNow();
        memory.finish();
        const Nanos taken = clock ? clock->timeOf(to) - clock->timeOf(from) : to - from;
        if (clock) clock->forget();
        return std::max<Nanos>(taken, 1);
    };
    callsTake(1); // warms up
    const int calls = static_cast<int>(std::clamp<Nanos>(batchTime / callsTake(1), 1, mostCalls));
    std::vector<Nanos> taken;
    for (int i = 0; i < batches && !stop.stop_requested(); ++i) taken.push_back(callsTake(calls));
    return static_cast<double>(upperMedian(std::move(taken))) / calls;
}

} // namespace

Result<std::vector<KernelTime>> timeKernels(std::string_view backend, const DeviceOptions& options,
                                            const Workload& workload, int microbatchSize, const std::stop_token& stop)
{
    const MathUse use = workload.mathUse(microbatchSize);
    const std::int64_t widest = use.widest;
    if (widest > std::numeric_limits<int>::max())
        return fail(ErrorCode::Usage,
                    fmt::format("an activation of {} elements; at most {} are possible", widest,
                                std::numeric_limits<int>::max()),
                    "use a smaller microbatch or a shorter sequence");
    STAGEWRIGHT_TRY(auto made, makeBackend(backend, options));
    STAGEWRIGHT_CHECK(workload.check(made->capabilities(), false));
    STAGEWRIGHT_TRY(auto memory, made->openMemory(0, 1, 1));
    std::string kernel = "its memory";
    try {
        Allocator allocator(memory ? *memory : hostMemory());
        STAGEWRIGHT_TRY(auto math, made->makeMath({0, 0, false, use}, allocator));
        const auto kernels = workload.kernels(*math, allocator, microbatchSize);
        if (!kernels)
            return fail(ErrorCode::Usage, fmt::format("the kernels of {} are not listed", workload.name()),
                        "give another model");
        std::vector<KernelTime> all;
        for (const TimedKernel& one : kernels->all) {
            kernel = one.kernel;
            const double nanos = timeOf(one, allocator.memory(), stop);
            if (stop.stop_requested()) return fail(ErrorCode::Cancelled, "stopped");
            all.push_back({one.kernel, one.shape, nanos, one.flops, one.bytes});
        }
        return all;
    } catch (const std::bad_alloc&) {
        return fail(ErrorCode::Unavailable, "there is not enough memory for the kernels of this model",
                    "use a smaller hidden, seq or --microbatch-size");
    } catch (const std::exception& e) {
        return fail(ErrorCode::Failed, fmt::format("{}: {}", kernel, e.what()));
    }
}

} // namespace stagewright
