#include "traces/analysis/launch_gaps.h"

#include <unordered_map>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/bubbles.h"
#include "traces/analysis/coverage.h"
#include "traces/analysis/kernel_spans.h"
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
    eachDeviceSpan(timeline, step, [&](const Track&, SpanId id, const Span& span) {
        if (const SpanId owner = ownerOf(timeline, id); owner != noSpan) covered[owner].add(span.start, span.end);
    });
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

std::vector<AnalysisColumn> launchGapColumns()
{
    return {{"rank", "Rank", ColumnKind::Whole},
            {"inside_ns", "Inside ops", ColumnKind::Time, "Time of ops in which none of their kernels or copies ran."},
            {"before_ns", "Before ops", ColumnKind::Time, "Idle although the input was there."},
            {"ops_ns", "Ops with kernels", ColumnKind::Time}};
}

Result<AnalysisRows> launchGapRows(const Run& run, int step)
{
    const Result<LaunchGapReport> report = analyseLaunchGaps(*run.timeline, step);
    if (!report) return tl::unexpected(report.error());
    AnalysisRows out;
    RankLaunchGaps all;
    for (std::size_t r = 0; r < report->ranks.size(); ++r) {
        const RankLaunchGaps& rank = report->ranks[r];
        out.rows.push_back({static_cast<std::int64_t>(r), rank.inside, rank.before, rank.ops});
        all.inside += rank.inside;
        all.before += rank.before;
    }
    out.sentence = fmt::format("launch gaps  {} of ranks × step: {} inside ops, {} before ops", formatPercent(report->exposedShare(), 2), formatDuration(all.inside),
                               formatDuration(all.before));
    return out;
}

std::string unknownWithoutLaunchers(const Run& run)
{
    if (std::string without = unknownWithoutKernels(run); !without.empty()) return without;
    return unknownWithoutOps(run);
}

} // namespace

extern const AnalysisInfo launch_gaps;
const AnalysisInfo launch_gaps{"launch_gaps", "Time a device waits for launches", launchGapColumns, unknownWithoutLaunchers, launchGapRows, false, ReportPart::Kernels};

} // namespace analyses

} // namespace stagewright
