#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/coverage.h"
#include "traces/analysis/kernels.h"
#include "traces/run/quantity.h"

namespace stagewright {

std::vector<ExposedCommunication> analyseExposedCommunication(const Timeline& timeline, int step)
{
    const auto ranks = static_cast<std::size_t>(std::max(0, timeline.ranks()));
    std::vector<Coverage> computing(ranks);
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
                computing[static_cast<std::size_t>(track.rank)].add(span.start, span.end);
        }
    }
    std::map<std::string, ExposedCommunication> byName;
    for (const SpanId id : communication) {
        const Span& span = timeline.spans()[id];
        const std::string name = timeline.nameOf(span), operation = collectiveOfKernel(name);
        ExposedCommunication& row = byName[operation.empty() ? briefKernelName(name) : operation];
        const Nanos hidden = computing[static_cast<std::size_t>(timeline.trackOf(id).rank)].within(span.start, span.end);
        ++row.calls;
        row.total += span.duration();
        row.hidden += hidden;
        if (row.longestExposed == noSpan || span.duration() - hidden > row.longest) {
            row.longest = span.duration() - hidden;
            row.longestExposed = id;
        }
    }
    std::vector<ExposedCommunication> rows;
    for (auto& [name, row] : byName) {
        row.name = name;
        rows.push_back(std::move(row));
    }
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.exposed() > b.exposed(); });
    return rows;
}

namespace analyses {

namespace {

std::vector<AnalysisColumn> exposedColumns()
{
    return {{"name", "Operation", ColumnKind::Text, "As the communication library names it."},
            {"calls", "Calls", ColumnKind::Count, "Kernels in the step, over all ranks."},
            {"total_ns", "Total", ColumnKind::Time, "Sum of their durations, waiting for other ranks included."},
            {"hidden_ns", "Hidden", ColumnKind::Time, "The part in which their device computes."},
            {"exposed_ns", "Exposed", ColumnKind::Time, "The part in which it does not."},
            {"exposed_share", "Exposed share", ColumnKind::Share, "Exposed over total."},
            {"mean_ns", "Mean", ColumnKind::Time, "Total over calls."},
            {"longest_exposed_ns", "Longest exposed", ColumnKind::Time, "Of one call; choosing a row goes there."}};
}

Result<AnalysisRows> exposedRows(const Run& run, int step)
{
    AnalysisRows out;
    Nanos total = 0, exposed = 0;
    for (const ExposedCommunication& row : analyseExposedCommunication(*run.timeline, step)) {
        out.rows.push_back({row.name, row.calls, row.total, row.hidden, row.exposed(), row.total > 0 ? static_cast<double>(row.exposed()) / static_cast<double>(row.total) : 0.0,
                            row.total / std::max<std::int64_t>(1, row.calls), row.longest});
        out.ops.push_back(row.longestExposed);
        total += row.total;
        exposed += row.exposed();
    }
    if (total > 0)
        out.sentence = fmt::format("{} of {} of communication are exposed, {} of them in {}", formatDuration(exposed), formatDuration(total),
                                   formatPercent(exposed > 0 ? static_cast<double>(std::get<std::int64_t>(out.rows.front()[4])) / static_cast<double>(exposed) : 0),
                                   std::get<std::string>(out.rows.front()[0]));
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
const AnalysisInfo exposed_communication{"exposed_communication", "Communication kernels hidden and exposed", exposedColumns, unknownWithoutCommunication, exposedRows};

} // namespace analyses

} // namespace stagewright
