#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/kernels.h"
#include "traces/analysis/step_context.h"
#include "traces/analysis/work_bytes.h"

namespace stagewright {

namespace analyses {

namespace {

std::vector<TableColumn> copyColumns()
{
    return {{"rank", "Rank", ColumnKind::Whole},
            {"name", "Direction", ColumnKind::Text, "As the profiler names it."},
            {"calls", "Calls", ColumnKind::Count},
            {"total_ns", "Total", ColumnKind::Time, "Sum of durations."},
            {"bytes", "Bytes", ColumnKind::Size, "Of the copies whose size the run has."},
            {"gigabytes_per_second", "GB/s", ColumnKind::Real,
             "These bytes over the durations of these copies; 10⁹ bytes."},
            {"longest_ns", "Longest", ColumnKind::Time, "Choosing a row goes there."}};
}

struct CopyRow {
    std::int64_t calls = 0;
    Nanos total = 0;
    Bytes bytes = 0;
    Nanos sized = 0; // durations of the copies whose size is known
    std::int64_t sizedCalls = 0;
    SpanId longest = noSpan;
};

Result<AnalysisRows> copyRows(const StepContext& context)
{
    const Timeline& timeline = context.timeline();
    const WorkBytes sizes(timeline);
    std::map<std::pair<int, std::string>, CopyRow> byDirection;
    for (const Track& track : timeline.tracks()) {
        if (track.lane != Lane::Copy) continue;
        const auto [first, last] = timeline.stepRange(track, context.step());
        for (SpanId id = first; id < last; ++id) {
            const Span& span = timeline.spans()[id];
            if (span.step != context.step()) continue;
            CopyRow& row = byDirection[{track.rank, timeline.nameOf(span)}];
            ++row.calls;
            row.total += span.duration();
            if (const auto bytes = sizes.of(id)) {
                row.bytes += *bytes;
                row.sized += span.duration();
                ++row.sizedCalls;
            }
            if (row.longest == noSpan || span.duration() > timeline.spans()[row.longest].duration()) row.longest = id;
        }
    }
    std::vector<std::pair<std::pair<int, std::string>, CopyRow>> ordered(byDirection.begin(), byDirection.end());
    std::stable_sort(ordered.begin(), ordered.end(),
                     [](const auto& a, const auto& b) { return a.second.total > b.second.total; });
    AnalysisRows out;
    Bytes bytes = 0;
    Nanos total = 0;
    std::int64_t sized = 0;
    for (const auto& [key, row] : ordered) {
        const bool known = row.sizedCalls > 0;
        out.rows.push_back({std::int64_t{key.first}, key.second, row.calls, row.total,
                            known ? TableCell(std::int64_t{row.bytes}) : TableCell(),
                            known ? cellOf(gigabytesPerSecond(row.bytes, row.sized)) : TableCell(),
                            timeline.spans()[row.longest].duration()});
        out.ops.push_back(row.longest);
        bytes += row.bytes;
        total += row.total;
        sized += row.sizedCalls;
    }
    if (sized > 0) out.sentence = fmt::format("{} copied in {}", formatBytes(bytes), formatDuration(total));
    return out;
}

std::string unknownWithoutCopies(const Run& run)
{
    if (std::string without = unknownWithoutKernels(run); !without.empty()) return without;
    for (const Track& track : run.timeline->tracks())
        if (track.lane == Lane::Copy && track.end > track.begin) return {};
    return "the run has no copies";
}

} // namespace

extern const AnalysisInfo copies;
const AnalysisInfo copies{"copies", "Copies by direction", copyColumns, unknownWithoutCopies, copyRows};

} // namespace analyses

} // namespace stagewright
