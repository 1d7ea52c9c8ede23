#include "traces/analysis/kernel_classes.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/coverage.h"
#include "traces/analysis/kernel_spans.h"
#include "traces/analysis/kernels.h"
#include "traces/analysis/step_context.h"

namespace stagewright {

std::vector<ClassTime> analyseKernelClasses(const Timeline& timeline, int step)
{
    const auto ranks = static_cast<std::size_t>(std::max(0, timeline.ranks()));
    const Devices devices(timeline);
    std::vector<std::vector<Coverage>> running(kernelClassCount, std::vector<Coverage>(devices.size()));
    std::vector<ClassTime> times(kernelClassCount);
    std::vector<Nanos> longest(kernelClassCount, -1);
    KernelClasses classes;
    eachDeviceSpan(timeline, step, [&](const Track& track, SpanId id, const Span& span) {
        const auto of = static_cast<std::size_t>(classes.of(timeline, track, span));
        ++times[of].calls;
        times[of].total += span.duration();
        running[of][devices.of(track)].add(span.start, span.end);
        if (span.duration() <= longest[of]) return;
        longest[of] = span.duration();
        times[of].longestSpan = id;
    });
    for (std::size_t of = 0; of < kernelClassCount; ++of) {
        times[of].of = static_cast<KernelClass>(of);
        times[of].byRank.assign(ranks, 0);
        for (std::size_t d = 0; d < devices.size(); ++d) { // of a rank with several GPUs their sum
            const Nanos time = running[of][d].total();
            times[of].byRank[static_cast<std::size_t>(devices.all()[d].rank)] += time;
            times[of].running += time;
        }
    }
    std::erase_if(times, [](const ClassTime& time) { return time.calls == 0; });
    std::stable_sort(times.begin(), times.end(),
                     [](const ClassTime& a, const ClassTime& b) { return a.total > b.total; });
    return times;
}

namespace analyses {

namespace {

std::vector<TableColumn> classColumns()
{
    return {{"class", "Class", ColumnKind::Text, "What kind of work the kernels do, by their names.", titleOfClass},
            {"calls", "Calls", ColumnKind::Count, "In the step, over all ranks."},
            {"total_ns", "Total", ColumnKind::Time,
             "Sum of the calls' durations; what ran at the same time counts twice. Choosing a row goes to the longest "
             "call."},
            {"share", "Share", ColumnKind::Share, "Of the total of all kernels and copies."},
            {"running_ns", "Running", ColumnKind::Time, "Time in which at least one of them runs, summed over ranks."},
            {"least_rank_ns", "Least of a rank", ColumnKind::Time, "Running time on the rank with the least."},
            {"most_rank_ns", "Most of a rank", ColumnKind::Time, "Running time on the rank with the most."}};
}

Result<AnalysisRows> classRows(const StepContext& context)
{
    const std::vector<ClassTime> times = analyseKernelClasses(context.timeline(), context.step());
    AnalysisRows out;
    Nanos total = 0;
    for (const ClassTime& time : times) total += time.total;
    const auto share = [total](const ClassTime& time) {
        return total > 0 ? static_cast<double>(time.total) / static_cast<double>(total) : 0.0;
    };
    for (const ClassTime& time : times) {
        const auto [least, most] = std::minmax_element(time.byRank.begin(), time.byRank.end());
        out.rows.push_back(
            {std::string(toText(time.of)), time.calls, time.total, share(time), time.running, *least, *most});
        out.ops.push_back(time.longestSpan);
        if (time.of == KernelClass::Other && share(time) > 0.1) // so that nobody takes the classes for the whole
            out.sentence = fmt::format("{} of the kernels' time has names that no rule of the classes matches",
                                       formatPercent(share(time)));
    }
    return out;
}

} // namespace

extern const AnalysisInfo kernel_classes;
const AnalysisInfo kernel_classes{
    "kernel_classes",  "Time by kernel class", classColumns, unknownWithoutKernels, classRows, false,
    ReportPart::Device};

} // namespace analyses

} // namespace stagewright
