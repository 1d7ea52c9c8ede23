#include <unordered_map>

#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/bubbles.h"
#include "traces/analysis/coverage.h"
#include "traces/analysis/kernels.h"

namespace stagewright {

Nanos LaunchGapReport::total() const
{
    Nanos sum = 0;
    for (const RankLaunchGaps& rank : ranks)
        sum += rank.inside + rank.before;
    return sum;
}

double LaunchGapReport::exposedShare() const
{
    if (window <= 0 || ranks.empty()) return 0;
    return static_cast<double>(total()) / (static_cast<double>(ranks.size()) * static_cast<double>(window));
}

Result<LaunchGapReport> analyseLaunchGaps(const Timeline& timeline, int step)
{
    LaunchGapReport report;
    report.ranks.resize(static_cast<std::size_t>(std::max(0, timeline.ranks())));
    if (!hasKernels(timeline)) return report;
    const Result<BubbleReport> bubbles = analyseBubbles(timeline, step);
    if (!bubbles) return tl::unexpected(bubbles.error());
    report.window = bubbles->makespan();
    std::unordered_map<SpanId, Coverage> covered; // by op
    for (const Track& track : timeline.tracks()) {
        if (track.lane != Lane::Kernel && track.lane != Lane::Copy) continue;
        const auto [first, last] = timeline.stepRange(track, step);
        for (SpanId id = first; id < last; ++id) {
            const Span& span = timeline.spans()[id];
            if (span.step != step) continue;
            if (const SpanId owner = ownerOf(timeline, id); owner != noSpan) covered[owner].add(span.start, span.end);
        }
    }
    for (auto& [owner, coverage] : covered) {
        const Span& op = timeline.spans()[owner];
        // Clipped to the step's window, as idle time is: an optimizer behind it is not part of the share.
        const Nanos begin = std::max(op.start, bubbles->windowBegin);
        const Nanos end = std::min(op.end, bubbles->windowEnd);
        if (end <= begin) continue;
        RankLaunchGaps& rank = report.ranks[static_cast<std::size_t>(timeline.trackOf(owner).rank)];
        rank.inside += end - begin - coverage.within(begin, end);
        rank.ops += end - begin;
    }
    for (std::size_t r = 0; r < report.ranks.size() && r < bubbles->ranks.size(); ++r)
        report.ranks[r].before = bubbles->ranks[r].byCause[static_cast<std::size_t>(IdleCause::Launch)];
    return report;
}

namespace analyses {

namespace {

Result<AnalysisTable> launchGapTable(const Timeline& timeline, int step)
{
    const Result<LaunchGapReport> report = analyseLaunchGaps(timeline, step);
    if (!report) return tl::unexpected(report.error());
    AnalysisTable table;
    table.columns = {{"rank", "Rank", ""}, {"inside_ns", "Inside ops", "ns"}, {"before_ns", "Before ops", "ns"}, {"ops_ns", "Ops with kernels", "ns"}};
    for (std::size_t r = 0; r < report->ranks.size(); ++r)
        table.rows.push_back({static_cast<std::int64_t>(r), report->ranks[r].inside, report->ranks[r].before, report->ranks[r].ops});
    return table;
}

} // namespace

extern const AnalysisInfo launch_gaps;
const AnalysisInfo launch_gaps{"launch_gaps", "Time a device waits for launches", "kernels or copies below ops", hasKernels, launchGapTable};

} // namespace analyses

} // namespace stagewright
