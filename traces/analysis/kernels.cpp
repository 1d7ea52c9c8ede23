#include "traces/analysis/kernels.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "schedules/base/step_number.h"
#include "schedules/model/kinds.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/kernel_spans.h"
#include "traces/analysis/step_context.h"

namespace stagewright {

bool isCollectiveTrack(const Track& track) { return track.lane == Lane::Kernel && track.name.ends_with("collective"); }

bool hasKernels(const Timeline& timeline)
{
    const auto tracks = timeline.tracks();
    return std::any_of(tracks.begin(), tracks.end(),
                       [](const Track& track) { return isDeviceLane(track.lane) && track.end > track.begin; });
}

std::string collectiveOfKernel(std::string_view kernel)
{
    if (!kernel.starts_with("nccl") && !kernel.starts_with("rccl") && !kernel.starts_with("hcom_")) return {};
    const std::size_t begin = kernel.find('_');
    if (begin == std::string_view::npos) return "collective";
    const std::string_view rest = kernel.substr(begin + 1);
    return std::string(rest.substr(0, rest.find_first_of("_(<")));
}

LaunchSeen launchOf(const Timeline& timeline, SpanId work)
{
    LaunchSeen seen;
    for (const Edge& edge : timeline.edgesInto(work)) {
        if (edge.kind != EdgeKind::Launch) continue;
        if (edge.from != work) seen.by = edge.from;
        if (edge.arrival < timeline.spans()[work].start) seen.time = edge.arrival;
    }
    return seen;
}

SpanId ownerOf(const Timeline& timeline, const LaunchSeen& launch)
{
    if (launch.by == noSpan) return noSpan;
    const Lane lane = timeline.trackOf(launch.by).lane;
    return lane == Lane::Compute || isMessageLane(lane) ? launch.by : noSpan;
}

SpanId ownerOf(const Timeline& timeline, SpanId work) { return ownerOf(timeline, launchOf(timeline, work)); }

std::string unknownWithoutKernels(const Run& run)
{
    const Timeline& timeline = *run.timeline;
    if (!hasKernels(timeline))
        return "this run has no kernels: only recordings on GPUs and traces of Kineto or Nsight Systems have them";
    for (const Track& track : timeline.tracks())
        if (isDeviceLane(track.lane))
            for (const Span& span : timeline.spansOf(track))
                if (span.step != outsideSteps) return "";
    return "no kernel is known to be of a step: the trace lacks their launches, and no step's range on a device holds "
           "them";
}

KernelReport analyseKernels(const Timeline& timeline, int step)
{
    KernelReport report;
    struct Sums {
        KernelRow row;
        double squares = 0; // of differences from the mean so far
        double mean = 0;
    };
    std::map<std::tuple<int, std::string, Lane>, Sums> rows; // kind −1: of no op
    KernelClasses classes;
    eachDeviceSpan(timeline, step, [&](const Track& track, SpanId id, const Span& span) {
        const SpanId owner = ownerOf(timeline, id);
        const int kind = owner == noSpan ? -1 : static_cast<int>(timeline.spans()[owner].op.kind);
        auto& [row, squares, mean] = rows[{kind, timeline.nameOf(span), track.lane}];
        if (row.calls == 0) row.of = classes.of(timeline, track, span);
        const double apart = static_cast<double>(span.duration()) - mean;
        mean += apart / static_cast<double>(row.calls + 1);
        squares += apart * (static_cast<double>(span.duration()) - mean);
        row.shortest = row.calls == 0 ? span.duration() : std::min(row.shortest, span.duration());
        if (row.longestSpan == noSpan || span.duration() > row.longest) row.longestSpan = id;
        row.longest = std::max(row.longest, span.duration());
        row.total += span.duration();
        ++row.calls;
        report.total += span.duration();
        ++report.calls;
    });
    for (auto& [key, sums] : rows) {
        KernelRow& row = sums.row;
        row.spread = row.calls > 1 ? std::sqrt(sums.squares / static_cast<double>(row.calls)) : 0;
        if (std::get<0>(key) >= 0) row.kind = static_cast<OpKind>(std::get<0>(key));
        row.name = std::get<1>(key);
        row.lane = std::get<2>(key);
        report.rows.push_back(std::move(row));
    }
    std::stable_sort(report.rows.begin(), report.rows.end(),
                     [](const KernelRow& a, const KernelRow& b) { return a.total > b.total; });
    return report;
}

namespace analyses {

namespace {

std::vector<TableColumn> kernelColumns()
{
    return {
        {"op", "Op", ColumnKind::Text, "Kind of the op that launched it; none: no op."},
        {"brief", "Kernel or copy", ColumnKind::Text, "Without namespaces, template arguments and parameters."},
        {"name", "Whole name", ColumnKind::Text, "As the device's trace names it."},
        {"class", "Class", ColumnKind::Text, "What kind of work it is, by its name.", titleOfClass},
        {"calls", "Calls", ColumnKind::Count, "In the step, over all ranks."},
        {"total_ns", "Total", ColumnKind::Time, "Sum of the calls' durations; what ran at the same time counts twice."},
        {"share", "Share", ColumnKind::Share, "Of the total of all kernels and copies."},
        {"mean_ns", "Mean", ColumnKind::Time, "Total over calls."},
        {"spread_ns", "Spread", ColumnKind::Time, "Standard deviation of the calls' durations."},
        {"shortest_ns", "Shortest", ColumnKind::Time},
        {"longest_ns", "Longest", ColumnKind::Time, "The longest call; choosing a row goes there."},
        {"lane", "Lane"}};
}

Result<AnalysisRows> kernelRows(const StepContext& context)
{
    const KernelReport report = analyseKernels(context.timeline(), context.step());
    AnalysisRows out;
    for (const KernelRow& row : report.rows) {
        out.rows.push_back({row.kind ? TableCell(std::string(ruleOf(*row.kind).text)) : TableCell(),
                            briefKernelName(row.name), row.name, std::string(toText(row.of)), row.calls, row.total,
                            report.total > 0 ? static_cast<double>(row.total) / static_cast<double>(report.total) : 0.0,
                            row.mean(), std::llround(row.spread), row.shortest, row.longest,
                            std::string(toText(row.lane))});
        out.ops.push_back(row.longestSpan);
    }
    out.figures = {{"calls", "Kernels and copies", ColumnKind::Count, static_cast<double>(report.calls)},
                   {"total_ns", "In all", ColumnKind::Time, static_cast<double>(report.total)}};
    return out;
}

} // namespace

extern const AnalysisInfo kernels;
const AnalysisInfo kernels{"kernels", "Kernels and copies by op", kernelColumns, unknownWithoutKernels, kernelRows,
                           false,     ReportPart::Kernels};

} // namespace analyses

} // namespace stagewright
