#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "schedules/base/median.h"
#include "schedules/base/quantity.h"
#include "schedules/base/step_number.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/device_time.h"
#include "traces/analysis/kernel_classes.h"
#include "traces/analysis/kernels.h"
#include "traces/analysis/step_context.h"
#include "traces/step/step_ops.h"

namespace stagewright {

namespace analyses {

namespace {

constexpr std::size_t mostSteps = 1'000; // the first ones; more would take seconds

std::vector<TableColumn> stepColumns()
{
    return {{"step_number", "Step", ColumnKind::Whole, "From 1, over all steps of the run."},
            {"window_ns", "First to last", ColumnKind::Time,
             "From the start of the step's first kernel or copy on any rank to the end of the last."},
            {"computing_ns", "Computing", ColumnKind::Time,
             "A kernel runs whose class is not communication; mean over the devices, as the following."},
            {"exposed_ns", "Exposed", ColumnKind::Time, "Communicating while nothing computes."},
            {"copying_ns", "Copying", ColumnKind::Time, "A copy or a fill runs."},
            {"idle_ns", "Idle", ColumnKind::Time, "Nothing runs."},
            {"calls", "Kernels and copies", ColumnKind::Count, "Over all ranks."},
            {"largest_class", "Largest class", ColumnKind::Text, "Of kernels, by the sum of durations."},
            {"largest_class_ns", "Its total", ColumnKind::Time, "Over all ranks."}};
}

Result<AnalysisRows> stepRows(const StepContext& context)
{
    const Run& run = context.run();
    const Timeline& timeline = context.timeline();
    AnalysisRows out;
    std::vector<double> windows;
    std::vector<int> steps = stepsFrom(timeline, 0);
    if (steps.size() > mostSteps) steps.resize(mostSteps);
    for (const int step : steps) {
        Nanos first = 0, last = 0, computing = 0, exposed = 0, copying = 0, idle = 0;
        std::int64_t ranks = 0, calls = 0;
        for (const RankDeviceTime& rank : analyseDeviceTime(timeline, step)) {
            if (rank.calls == 0) continue;
            first = ranks == 0 ? rank.first : std::min(first, rank.first);
            last = ranks == 0 ? rank.last : std::max(last, rank.last);
            ++ranks;
            calls += rank.calls;
            computing += rank.computing;
            exposed += rank.exposed();
            copying += rank.copying;
            idle += rank.idle();
        }
        if (ranks == 0) continue;
        const auto classes = analyseKernelClasses(timeline, step);
        out.rows.push_back({std::int64_t{stepNumber(step)}, last - first, computing / ranks, exposed / ranks,
                            copying / ranks, idle / ranks, calls,
                            classes.empty() ? TableCell() : TableCell(std::string(titleOf(classes.front().of))),
                            classes.empty() ? TableCell() : TableCell(classes.front().total)});
        out.ops.push_back(classes.empty() ? noSpan : classes.front().longestSpan);
        windows.push_back(static_cast<double>(last - first));
    }
    if (windows.size() > 1) {
        const double median = upperMedian(windows);
        const auto slowest = std::max_element(windows.begin(), windows.end()) - windows.begin();
        const std::string all = run.median && timeline.steps() > static_cast<int>(windows.size())
                                    ? fmt::format("{} of {}", windows.size(), timeline.steps())
                                    : std::to_string(windows.size());
        out.sentence =
            fmt::format("of {} steps step {} takes longest: {}, {} against the median", all,
                        std::get<std::int64_t>(out.rows[static_cast<std::size_t>(slowest)][0]),
                        formatDuration(static_cast<Nanos>(windows[static_cast<std::size_t>(slowest)])),
                        formatChange(median > 0 ? windows[static_cast<std::size_t>(slowest)] / median - 1 : 0));
    }
    return out;
}

} // namespace

extern const AnalysisInfo device_steps;
const AnalysisInfo device_steps{
    "device_steps", "Devices step by step", stepColumns, unknownWithoutKernels, stepRows, true};

} // namespace analyses

} // namespace stagewright
