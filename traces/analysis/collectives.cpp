// Gathers of weights and reductions of gradients beside compute: how often, how many bytes, and how much of their time
// ranks wait.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/bubbles.h"
#include "traces/analysis/collective_uses.h"
#include "traces/analysis/step_context.h"
#include "traces/run/run_facts.h"

namespace stagewright::analyses {

namespace {

struct CollectiveRow {
    std::int64_t count = 0;
    Nanos total = 0;
    Nanos hidden = 0;
    Nanos exposed = 0; // awaited + outside
    Nanos awaited = 0;
    Nanos outside = 0;
    SpanId longestAwaited = noSpan;
    Nanos longest = 0;
};

std::vector<TableColumn> collectiveColumns()
{
    return {
        {"rank", "Rank", ColumnKind::Whole},
        {"kind", "Kind", ColumnKind::Text, "gather: weights of other owners; reduce: gradients to their owners."},
        {"count", "Count", ColumnKind::Count, "Of the step."},
        {"bytes", "Received", ColumnKind::Size, "What the rank receives in them; unknown without the stages' sizes."},
        {"total_ns", "Total", ColumnKind::Time, "Sum of their durations."},
        {"hidden_ns", "Hidden", ColumnKind::Time, "The part in which the rank runs an op."},
        {"exposed_ns", "Exposed", ColumnKind::Time,
         "What the timeline hatches: waited for, or outside the ops of the step. What is neither hidden nor exposed "
         "ran while the rank was idle for another reason."},
        {"awaited_ns", "Waited for", ColumnKind::Time, "The exposed part that is idle time with the cause collective."},
        {"outside_ns", "Outside", ColumnKind::Time,
         "The exposed part before the first or after the last op of the step, while the rank runs nothing; of a rank "
         "without ops all of it."}};
}

Result<AnalysisRows> collectiveRows(const StepContext& context)
{
    const Run& run = context.run();
    const Timeline& timeline = context.timeline();
    if (!context.bubbles()) return tl::unexpected(context.bubbles().error());
    const BubbleReport& report = *context.bubbles();
    std::vector<std::array<CollectiveRow, 2>> ranks(static_cast<std::size_t>(std::max(0, timeline.ranks())));
    for (const CollectiveUse& use : collectiveUses(timeline, report).uses) {
        const Track& track = timeline.trackOf(use.span);
        CollectiveRow& row = ranks[static_cast<std::size_t>(track.rank)][track.lane == Lane::Gather ? 0 : 1];
        if (!isTakenLater(timeline, timeline.spans()[use.span])) ++row.count;
        row.total += timeline.spans()[use.span].duration();
        row.hidden += use.hidden;
        row.exposed += use.exposed();
        row.awaited += use.awaited;
        row.outside += use.outside;
        if (row.longestAwaited != noSpan && use.awaited <= row.longest) continue;
        row.longest = use.awaited;
        row.longestAwaited = use.awaited > 0 ? use.span : noSpan;
    }
    const std::vector<RankCollectives> received =
        rankCollectives(timeline, context.step(), run.schedule.get(), run.costs ? &*run.costs : nullptr);
    AnalysisRows out;
    Nanos total = 0, exposed = 0, awaited = 0;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
        for (std::size_t kind = 0; kind < 2; ++kind) {
            const CollectiveRow& row = ranks[rank][kind];
            if (row.count == 0) continue;
            const std::optional<Bytes> bytes = rank >= received.size() ? std::nullopt
                                               : kind == 0             ? received[rank].gathered
                                                                       : received[rank].reduced;
            const auto size = bytes ? TableCell(std::int64_t{*bytes}) : TableCell();
            out.rows.push_back({static_cast<std::int64_t>(rank), std::string(kind == 0 ? "gather" : "reduce"),
                                row.count, size, row.total, row.hidden, row.exposed, row.awaited, row.outside});
            out.ops.push_back(row.longestAwaited);
            total += row.total;
            exposed += row.exposed;
            awaited += row.awaited;
        }
    // of the step, with what is before the first and after the last op
    Nanos begin = report.windowBegin, end = report.windowEnd;
    for (const StepMark& mark : timeline.stepMarks())
        if (mark.step == context.step()) {
            begin = std::min(begin, mark.begin);
            end = std::max(end, mark.end);
        }
    const auto text = [&](Nanos time) { return formatDuration(time, timeline.timeUnit()); };
    if (total > 0 && report.makespan() == 0) // no op is known
        out.sentence =
            fmt::format("{} of {} of gathers and reductions are exposed: no kernel of their rank computes meanwhile",
                        text(exposed), text(total));
    else if (total > 0)
        out.sentence =
            fmt::format("{} of {} of gathers and reductions are exposed, {} of it between the ops; with them and the "
                        "optimizer the step takes {}, its ops alone {}",
                        text(exposed), text(total), text(awaited), text(end - begin), text(report.makespan()));
    return out;
}

std::string unknownWithoutCollectives(const Run& run)
{
    for (const Track& track : run.timeline->tracks())
        if (isCollectiveLane(track.lane)) return {};
    return "this run gathers no weights and reduces no gradients beside compute";
}

} // namespace

extern const AnalysisInfo collectives;
const AnalysisInfo collectives{"collectives", "Gathers and reductions, hidden and exposed", collectiveColumns,
                               unknownWithoutCollectives, collectiveRows};

} // namespace stagewright::analyses
