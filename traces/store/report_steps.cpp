// A run may be too large to be read as a whole: these are the steps that a report of one of them is made from.
#include "traces/store/report_steps.h"

#include <algorithm>
#include <functional>
#include <set>

#include "traces/analysis/step_sample.h"
#include "traces/store/run_reader.h"
#include "traces/store/run_store.h"
#include "traces/store/run_stream.h"

namespace stagewright {

namespace {

constexpr std::size_t slowestRead = 8; // a rank that was slow in one step is among these

// With the steps beside it that overlap it: bounds by step, whose times grow with it.
void addOverlapping(const std::vector<RunFile::StepBounds>& steps, int step, std::set<int>& out)
{
    constexpr std::size_t farthest = 64;
    const auto at =
        std::lower_bound(steps.begin(), steps.end(), step,
                         [](const RunFile::StepBounds& bounds, int number) { return bounds.step < number; });
    if (at == steps.end() || at->step != step) return;
    out.insert(step);
    const auto place = static_cast<std::size_t>(at - steps.begin());
    for (std::size_t i = place; i-- > 0 && place - i <= farthest && steps[i].end > at->begin;)
        out.insert(steps[i].step);
    for (std::size_t i = place + 1; i < steps.size() && i - place <= farthest && steps[i].begin < at->end; ++i)
        out.insert(steps[i].step);
}

} // namespace

Result<Run> readForReport(RunStore& store, std::int64_t id, int step, const Progress& progress)
{
    auto header = readRunHeader(store, id);
    if (!header) return header;
    STAGEWRIGHT_TRY(const auto steps, withAllSteps(
                                          // a recording may be longer when they are read
                                          store, [&] { return readStepBounds(store, id); }, progress.stop));
    constexpr std::int64_t gap = 1'000'000; // of steps that no row has
    if (steps.empty() || steps.back().step > static_cast<std::int64_t>(steps.size()) + gap)
        return readRun(store, id, {}, progress);
    const int count = steps.back().step + 1, first = std::clamp(header->info.warmupSteps, 0, count - 1);
    std::vector<std::pair<Nanos, Nanos>> bounds(static_cast<std::size_t>(count), {0, -1});
    std::int64_t spansOfFirst = 0;
    for (const RunFile::StepBounds& one : steps) {
        bounds[static_cast<std::size_t>(one.step)] = {one.begin, one.end};
        if (one.step == first) spansOfFirst = one.spans;
    }
    const int median = representativeStep(bounds, header->metrics, header->info.warmupSteps);
    std::set<int> chosen;
    for (const int each : {median, step, first, steps.back().step}) addOverlapping(steps, each, chosen);
    for (const int each : sampledSteps(first, count, spansOfFirst, header->info.spanCount))
        addOverlapping(steps, each, chosen);
    std::vector<std::pair<Nanos, int>> slowest;
    for (const RunFile::StepBounds& one : steps)
        if (one.step >= first) slowest.emplace_back(one.end - one.begin, one.step);
    const auto most = slowest.begin() + static_cast<std::ptrdiff_t>(std::min(slowest.size(), slowestRead));
    std::partial_sort(slowest.begin(), most, slowest.end(), std::greater<>());
    for (auto one = slowest.begin(); one != most; ++one) addOverlapping(steps, one->second, chosen);
    const std::vector<int> read(chosen.begin(), chosen.end());
    StepRange range;
    range.first = read.front();
    range.last = read.back();
    range.chosen = read;
    range.header = &*header;
    auto run = readRun(store, id, range, progress);
    if (run) run->median = median;
    return run;
}

} // namespace stagewright
