#include "traces/analysis/exposed_communication.h"

#include <algorithm>
#include <bit>
#include <map>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/collective_groups.h"
#include "traces/analysis/coverage.h"
#include "traces/analysis/kernel_spans.h"
#include "traces/analysis/kernels.h"
#include "traces/analysis/step_context.h"
#include "traces/analysis/work_bytes.h"
#include "traces/run/run_facts.h"

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
    const CollectiveGroups groups(timeline);
    std::map<std::pair<std::string, std::optional<Bytes>>, ExposedCommunication> byName;
    std::map<const ExposedCommunication*, std::map<int, Nanos>> waitedFor; // by the rank that entered last
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
        const auto parts = groups.of(id);
        if (!parts) continue;
        ++row.matched;
        row.waiting += parts->waiting;
        row.transfer += parts->transfer;
        row.transferred += bytes.value_or(0);
        const auto factor = busFactor(operation, parts->ranks);
        row.bus = row.bus && factor;
        row.busBytes += factor.value_or(0) * static_cast<double>(bytes.value_or(0));
        if (parts->waiting > 0) waitedFor[&row][timeline.trackOf(parts->last).rank] += parts->waiting;
    }
    std::vector<ExposedCommunication> rows;
    for (auto& [key, row] : byName) {
        row.name = key.first;
        for (const auto& [rank, wait] : waitedFor[&row])
            if (wait > row.waitedForBy) row.waitedFor = rank, row.waitedForBy = wait;
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
             "Bytes over their time, waiting for other ranks included; 10⁹ bytes."},
            {"matched_calls", "Matched", ColumnKind::Count,
             "Calls whose other ranks are in the traces; the following columns are of these."},
            {"waiting_ns", "Waiting", ColumnKind::Time, "Until the last rank enters; 0 for that rank."},
            {"waited_for_rank", "Waited for", ColumnKind::Whole, "The rank that entered last for most of the waiting."},
            {"transfer_ns", "Transfer", ColumnKind::Time, "From then to their end."},
            {"transfer_gigabytes_per_second", "GB/s in transfer", ColumnKind::Real, "Bytes over transfer."},
            {"bus_gigabytes_per_second", "Bus GB/s", ColumnKind::Real,
             "The same as bus bandwidth, which compares with the speed of links: times 2 (n − 1) ÷ n for an all-reduce "
             "of n "
             "ranks, (n − 1) ÷ n for gathers, scatters and exchanges."}};
}

Result<AnalysisRows> exposedRows(const StepContext& context)
{
    AnalysisRows out;
    Nanos total = 0, exposed = 0, waiting = 0, transfer = 0;
    const std::string lacking = configured(context.run(), collectivesLackingRanks); // their last rank may be another
    std::map<std::string, Nanos> byName;                                            // exposed
    for (const ExposedCommunication& row : analyseExposedCommunication(context.timeline(), context.step())) {
        const auto size = row.least ? TableCell(std::int64_t{*row.least}) : TableCell();
        const auto rate = row.least ? cellOf(gigabytesPerSecond(row.bytes, row.total)) : TableCell();
        const bool known = row.matched > 0;
        const auto moved = row.least && known ? cellOf(gigabytesPerSecond(row.transferred, row.transfer)) : TableCell();
        const auto bus = row.least && known && row.bus && row.transfer > 0 && lacking.empty()
                             ? TableCell(row.busBytes / static_cast<double>(row.transfer))
                             : TableCell();
        out.rows.push_back({row.name, size, row.calls, row.total, row.hidden, row.exposed(),
                            row.total > 0 ? static_cast<double>(row.exposed()) / static_cast<double>(row.total) : 0.0,
                            row.total / std::max<std::int64_t>(1, row.calls), row.longest, rate, row.matched,
                            known ? TableCell(row.waiting) : TableCell(),
                            row.waitedFor >= 0 ? TableCell(std::int64_t{row.waitedFor}) : TableCell(),
                            known ? TableCell(row.transfer) : TableCell(), moved, bus});
        out.ops.push_back(row.longestExposed);
        total += row.total;
        exposed += row.exposed();
        waiting += row.waiting;
        transfer += row.transfer;
        byName[row.name] += row.exposed();
    }
    if (total > 0) {
        const auto most = std::max_element(byName.begin(), byName.end(),
                                           [](const auto& x, const auto& y) { return x.second < y.second; });
        out.sentence = fmt::format(
            "{} of {} of communication are exposed, {} of them in {}", formatDuration(exposed), formatDuration(total),
            formatPercent(exposed > 0 ? static_cast<double>(most->second) / static_cast<double>(exposed) : 0),
            most->first);
        if (waiting + transfer > 0)
            out.sentence += fmt::format("; collectives wait {} for their last rank and transfer for {}",
                                        formatDuration(waiting), formatDuration(transfer));
        if (!lacking.empty())
            out.sentence += fmt::format("; {} of them lack ranks of their group in the traces, so they may wait longer "
                                        "and transfer shorter",
                                        lacking);
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
