#include "traces/analysis/exposed_communication.h"

#include <algorithm>
#include <bit>
#include <map>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/coverage.h"
#include "traces/analysis/kernel_spans.h"
#include "traces/analysis/kernels.h"
#include "traces/analysis/step_context.h"
#include "traces/analysis/work_bytes.h"

namespace stagewright {

std::vector<ExposedCommunication> analyseExposedCommunication(const Timeline& timeline, int step)
{
    const Devices devices(timeline);
    std::vector<Coverage> computing(devices.size());
    std::vector<SpanId> communication;
    KernelClasses classes;
    for (const Track& track : timeline.tracks()) {
        if (track.lane != Lane::Kernel) continue;
        const auto [first, last] = timeline.stepRange(track, step);
        for (SpanId id = first; id < last; ++id) {
            const Span& span = timeline.spans()[id];
            if (span.step != step) continue;
            if (isCommunication(classes.of(timeline, track, span)))
                communication.push_back(id);
            else
                computing[devices.of(track)].add(span.start, span.end);
        }
    }
    const WorkBytes sizes(timeline);
    std::map<std::pair<std::string, std::optional<Bytes>>, ExposedCommunication> byName;
    for (const SpanId id : communication) {
        const Span& span = timeline.spans()[id];
        const std::string name = timeline.nameOf(span);
        std::string operation(operationInShape(timeline.shapeOf(span)));
        if (operation.empty()) operation = collectiveOfKernel(name);
        const std::optional<Bytes> bytes = sizes.of(id);
        const std::optional<Bytes> least =
            bytes ? std::optional<Bytes>(
                        static_cast<Bytes>(std::bit_floor(static_cast<std::uint64_t>(std::max<Bytes>(0, *bytes)))))
                  : std::nullopt;
        ExposedCommunication& row = byName[{operation.empty() ? briefKernelName(name) : operation, least}];
        row.least = least;
        row.bytes += bytes.value_or(0);
        const Nanos hidden = computing[devices.of(timeline.trackOf(id))].within(span.start, span.end);
        ++row.calls;
        row.total += span.duration();
        row.hidden += hidden;
        if (row.longestExposed == noSpan || span.duration() - hidden > row.longest) {
            row.longest = span.duration() - hidden;
            row.longestExposed = id;
        }
    }
    std::vector<ExposedCommunication> rows;
    for (auto& [key, row] : byName) {
        row.name = key.first;
        rows.push_back(std::move(row));
    }
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.exposed() > b.exposed(); });
    return rows;
}

namespace analyses {

namespace {

std::vector<TableColumn> exposedColumns()
{
    return {{"name", "Operation", ColumnKind::Text, "As the communication library names it."},
            {"size", "Size from", ColumnKind::Size,
             "Of one call, to less than twice as much; the larger of its input and its output."},
            {"calls", "Calls", ColumnKind::Count, "Kernels in the step, over all ranks."},
            {"total_ns", "Total", ColumnKind::Time, "Sum of their durations, waiting for other ranks included."},
            {"hidden_ns", "Hidden", ColumnKind::Time, "The part in which their device computes."},
            {"exposed_ns", "Exposed", ColumnKind::Time, "The part in which it does not."},
            {"exposed_share", "Exposed share", ColumnKind::Share, "Exposed over total."},
            {"mean_ns", "Mean", ColumnKind::Time, "Total over calls."},
            {"longest_exposed_ns", "Longest exposed", ColumnKind::Time, "Of one call; choosing a row goes there."},
            {"gigabytes_per_second", "GB/s", ColumnKind::Real,
             "Bytes over their time, waiting for other ranks included; 10⁹ bytes."}};
}

Result<AnalysisRows> exposedRows(const StepContext& context)
{
    AnalysisRows out;
    Nanos total = 0, exposed = 0;
    std::map<std::string, Nanos> byName; // exposed
    for (const ExposedCommunication& row : analyseExposedCommunication(context.timeline(), context.step())) {
        const auto size = row.least ? TableCell(std::int64_t{*row.least}) : TableCell();
        const auto rate = row.least ? cellOf(gigabytesPerSecond(row.bytes, row.total)) : TableCell();
        out.rows.push_back({row.name, size, row.calls, row.total, row.hidden, row.exposed(),
                            row.total > 0 ? static_cast<double>(row.exposed()) / static_cast<double>(row.total) : 0.0,
                            row.total / std::max<std::int64_t>(1, row.calls), row.longest, rate});
        out.ops.push_back(row.longestExposed);
        total += row.total;
        exposed += row.exposed();
        byName[row.name] += row.exposed();
    }
    if (total > 0) {
        const auto most = std::max_element(byName.begin(), byName.end(),
                                           [](const auto& x, const auto& y) { return x.second < y.second; });
        out.sentence = fmt::format(
            "{} of {} of communication are exposed, {} of them in {}", formatDuration(exposed), formatDuration(total),
            formatPercent(exposed > 0 ? static_cast<double>(most->second) / static_cast<double>(exposed) : 0),
            most->first);
    }
    return out;
}

std::string unknownWithoutCommunication(const Run& run)
{
    if (std::string without = unknownWithoutKernels(run); !without.empty()) return without;
    KernelClasses classes;
    for (const Track& track : run.timeline->tracks())
        if (track.lane == Lane::Kernel)
            for (const Span& span : run.timeline->spansOf(track))
                if (isCommunication(classes.of(*run.timeline, track, span))) return {};
    return "none of this run's kernels is of a communication library";
}

} // namespace

extern const AnalysisInfo exposed_communication;
const AnalysisInfo exposed_communication{"exposed_communication",
                                         "Communication kernels hidden and exposed",
                                         exposedColumns,
                                         unknownWithoutCommunication,
                                         exposedRows,
                                         false,
                                         ReportPart::Device};

} // namespace analyses

} // namespace stagewright
