#include "traces/analysis/kernels.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "schedules/kinds.h"
#include "traces/analysis/analysis_registry.h"

namespace stagewright {

bool isCollectiveTrack(const Track& track)
{
    return track.lane == Lane::Kernel && track.name.ends_with("collective");
}

bool hasKernels(const Timeline& timeline)
{
    const auto tracks = timeline.tracks();
    return std::any_of(tracks.begin(), tracks.end(), [](const Track& track) {
        return (track.lane == Lane::Kernel || track.lane == Lane::Copy) && track.end > track.begin;
    });
}

SpanId ownerOf(const Timeline& timeline, SpanId work)
{
    for (const Edge& edge : timeline.edgesInto(work))
        if (edge.kind == EdgeKind::Launch) {
            const Lane lane = timeline.trackOf(edge.from).lane;
            return lane == Lane::Compute || lane == Lane::Send || lane == Lane::Receive ? edge.from : noSpan;
        }
    return noSpan;
}

KernelReport analyseKernels(const Timeline& timeline, int step)
{
    KernelReport report;
    std::map<std::tuple<int, std::string, Lane>, KernelRow> rows; // kind −1: of no op
    for (const Track& track : timeline.tracks()) {
        if (track.lane != Lane::Kernel && track.lane != Lane::Copy) continue;
        const auto [first, last] = timeline.stepRange(track, step);
        for (SpanId id = first; id < last; ++id) {
            const Span& span = timeline.spans()[id];
            if (span.step != step) continue;
            const SpanId owner = ownerOf(timeline, id);
            const int kind = owner == noSpan ? -1 : static_cast<int>(timeline.spans()[owner].op.kind);
            KernelRow& row = rows[{kind, timeline.nameOf(span), track.lane}];
            row.shortest = row.calls == 0 ? span.duration() : std::min(row.shortest, span.duration());
            if (row.longestSpan == noSpan || span.duration() > row.longest) row.longestSpan = id;
            row.longest = std::max(row.longest, span.duration());
            row.total += span.duration();
            ++row.calls;
            report.total += span.duration();
            ++report.calls;
        }
    }
    for (auto& [key, row] : rows) {
        if (std::get<0>(key) >= 0) row.kind = static_cast<OpKind>(std::get<0>(key));
        row.name = std::get<1>(key);
        row.lane = std::get<2>(key);
        report.rows.push_back(std::move(row));
    }
    std::stable_sort(report.rows.begin(), report.rows.end(), [](const KernelRow& a, const KernelRow& b) { return a.total > b.total; });
    return report;
}

namespace analyses {

namespace {

Result<AnalysisTable> kernelTable(const Timeline& timeline, int step)
{
    const KernelReport report = analyseKernels(timeline, step);
    AnalysisTable table;
    table.columns = {{"op", "Op", ""},           {"name", "Kernel", ""},   {"lane", "Lane", ""},          {"calls", "Calls", ""},
                     {"total_ns", "Total", "ns"}, {"mean_ns", "Mean", "ns"}, {"shortest_ns", "Shortest", "ns"}, {"longest_ns", "Longest", "ns"}};
    for (const KernelRow& row : report.rows)
        table.rows.push_back({row.kind ? std::string(ruleOf(*row.kind).text) : std::string(), row.name, std::string(toText(row.lane)), row.calls,
                              row.total, row.mean(), row.shortest, row.longest});
    return table;
}

} // namespace

extern const AnalysisInfo kernels;
const AnalysisInfo kernels{"kernels", "Kernels and copies by op", "kernels or copies below ops", hasKernels, kernelTable};

} // namespace analyses

} // namespace stagewright
