#include "traces/analysis/launch_gaps.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/kernel_spans.h"
#include "traces/analysis/kernels.h"

namespace stagewright {

RankLaunchGaps LaunchGapReport::all() const
{
    RankLaunchGaps sum;
    sum.late = 0;
    for (const RankLaunchGaps& rank : ranks) {
        sum.inside += rank.inside;
        sum.before += rank.before;
        sum.ops += rank.ops;
        if (sum.late) sum.late = rank.late ? std::optional(*sum.late + *rank.late) : std::nullopt;
    }
    return sum;
}

double LaunchGapReport::shareOf(Nanos time) const
{
    if (window <= 0 || ranks.empty()) return 0;
    return static_cast<double>(time) / (static_cast<double>(ranks.size()) * static_cast<double>(window));
}

double LaunchGapReport::exposedShare() const { return shareOf(all().exposed()); }

std::optional<double> LaunchGapReport::lateShare() const
{
    const RankLaunchGaps sum = all();
    if (!sum.late) return std::nullopt;
    return shareOf(*sum.late + sum.before);
}

namespace {

struct Piece { // work of an op
    Nanos begin, end;
    std::optional<Nanos> launched;
};

// What lies between an op's pieces, within [begin, end).
void addGaps(std::vector<Piece>& pieces, Nanos begin, Nanos end, RankLaunchGaps& rank)
{
    std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
    Nanos until = begin; // what ran so far is over
    for (const Piece& piece : pieces) {
        const Nanos next = std::clamp(piece.begin, begin, end);
        if (next > until) {
            rank.inside += next - until;
            if (!piece.launched) rank.late.reset();
            if (rank.late) *rank.late += std::clamp<Nanos>(*piece.launched - until, 0, next - until);
        }
        until = std::max(until, std::min(piece.end, end));
    }
    rank.inside += end - until;
    rank.ops += end - begin;
}

} // namespace

Result<LaunchGapReport> analyseLaunchGaps(const StepContext& context)
{
    const Timeline& timeline = context.timeline();
    LaunchGapReport report;
    report.ranks.resize(static_cast<std::size_t>(std::max(0, timeline.ranks())));
    if (!hasKernels(timeline)) return report;
    if (!context.bubbles()) return tl::unexpected(context.bubbles().error());
    const BubbleReport& bubbles = *context.bubbles();
    report.window = bubbles.makespan();
    std::map<SpanId, std::vector<Piece>> pieces; // by op
    eachDeviceSpan(timeline, context.step(), [&](const Track&, SpanId id, const Span& span) {
        const LaunchSeen launch = launchOf(timeline, id);
        if (const SpanId owner = ownerOf(timeline, launch); owner != noSpan)
            pieces[owner].push_back({span.start, span.end, launch.time});
    });
    for (RankLaunchGaps& rank : report.ranks) rank.late = 0;
    for (auto& [owner, work] : pieces) {
        const Span& op = timeline.spans()[owner];
        // Clipped to the step's window, as idle time is: an optimizer behind it is not part of the share.
        const Nanos begin = std::max(op.start, bubbles.windowBegin);
        const Nanos end = std::min(op.end, bubbles.windowEnd);
        if (end > begin)
            addGaps(work, begin, end, report.ranks[static_cast<std::size_t>(timeline.trackOf(owner).rank)]);
    }
    for (std::size_t r = 0; r < report.ranks.size() && r < bubbles.ranks.size(); ++r)
        report.ranks[r].before = bubbles.ranks[r].byCause[static_cast<std::size_t>(IdleCause::Launch)];
    return report;
}

namespace analyses {

namespace {

std::vector<TableColumn> launchGapColumns()
{
    return {{"rank", "Rank", ColumnKind::Whole},
            {"inside_ns", "Inside ops", ColumnKind::Time, "Time of ops in which none of their kernels or copies ran."},
            {"late_ns", "Launched late", ColumnKind::Time,
             "Of that, until the launch of what ran next was called: the host was late. The rest passed between that "
             "call and the start."},
            {"before_ns", "Before ops", ColumnKind::Time, "Idle although the input was there."},
            {"ops_ns", "Ops with kernels", ColumnKind::Time}};
}

Result<AnalysisRows> launchGapRows(const StepContext& context)
{
    STAGEWRIGHT_TRY(const LaunchGapReport report, analyseLaunchGaps(context));
    AnalysisRows out;
    for (std::size_t r = 0; r < report.ranks.size(); ++r) {
        const RankLaunchGaps& rank = report.ranks[r];
        out.rows.push_back({static_cast<std::int64_t>(r), rank.inside, cellOf(rank.late), rank.before, rank.ops});
    }
    const RankLaunchGaps all = report.all();
    out.sentence =
        fmt::format("launch gaps  {} of ranks × step: {} inside ops{}, {} before ops",
                    formatPercent(report.exposedShare(), 2), formatDuration(all.inside),
                    all.late ? fmt::format(" ({} of it launched late)", formatDuration(*all.late)) : std::string(),
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
const AnalysisInfo launch_gaps{"launch_gaps", "Launch gaps", launchGapColumns,   unknownWithoutLaunchers,
                               launchGapRows, false,         ReportPart::Kernels};

} // namespace analyses

} // namespace stagewright
