// Gathers of weights and reductions of gradients beside compute: how often, how many bytes, and how much of their time ranks wait.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "schedules/model/collective_costs.h"
#include "schedules/model/kinds.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/bubbles.h"
#include "traces/analysis/coverage.h"
#include "traces/run/quantity.h"
#include "traces/run/run_facts.h"

namespace stagewright::analyses {

namespace {

struct Row {
    std::int64_t count = 0;
    Nanos total = 0;
    Nanos hidden = 0;
    Nanos exposed = 0;
    SpanId longestAwaited = noSpan;
    Nanos longest = 0;
};

std::vector<AnalysisColumn> collectiveColumns()
{
    return {{"rank", "Rank", ColumnKind::Whole},
            {"kind", "Kind", ColumnKind::Text, "gather: weights of other owners; reduce: gradients to their owners."},
            {"count", "Count", ColumnKind::Count, "Of the step."},
            {"bytes", "Received", ColumnKind::Size, "What the rank receives in them; unknown without the stages' sizes."},
            {"total_ns", "Total", ColumnKind::Time, "Sum of their durations."},
            {"hidden_ns", "Hidden", ColumnKind::Time, "The part in which the rank runs an op."},
            {"exposed_ns", "Exposed", ColumnKind::Time, "Idle time with the cause collective. What is neither ran while the rank was idle for another reason, or before its first or after its last op."}};
}

// What a real run's transport counted: its counters start from 0 in every step.
AnalysisCell countedBytes(const Timeline& timeline, int step, int rank, std::string_view name)
{
    const auto counter = std::find_if(timeline.counters().begin(), timeline.counters().end(), [&](const Counter& each) { return each.rank == rank && each.name == name; });
    const auto mark = std::find_if(timeline.stepMarks().begin(), timeline.stepMarks().end(), [&](const StepMark& each) { return each.rank == rank && each.step == step; });
    if (counter == timeline.counters().end() || mark == timeline.stepMarks().end()) return {};
    double most = 0;
    for (const CounterSample& sample : counter->samples)
        if (sample.time >= mark->begin && sample.time <= mark->end) most = std::max(most, sample.value);
    return static_cast<std::int64_t>(most);
}

Result<AnalysisRows> collectiveRows(const Run& run, int step)
{
    const Timeline& timeline = *run.timeline;
    const auto report = analyseBubbles(timeline, step, BubbleOptions{memoryCapOf(run)});
    if (!report) return tl::unexpected(report.error());
    std::vector<std::array<Row, 2>> ranks(static_cast<std::size_t>(std::max(0, timeline.ranks())));
    std::vector<Coverage> computing(ranks.size());
    for (const Track& track : timeline.tracks()) {
        if (track.lane != Lane::Compute) continue;
        const auto [first, last] = timeline.stepRange(track, step);
        for (SpanId id = first; id < last; ++id)
            if (timeline.spans()[id].op.kind != OpKind::Filler) computing[static_cast<std::size_t>(track.rank)].add(timeline.spans()[id].start, timeline.spans()[id].end);
    }
    for (const Track& track : timeline.tracks()) {
        if (track.lane != Lane::Gather && track.lane != Lane::Reduce) continue;
        Row& row = ranks[static_cast<std::size_t>(track.rank)][track.lane == Lane::Gather ? 0 : 1];
        const auto [first, last] = timeline.stepRange(track, step);
        for (SpanId id = first; id < last; ++id) {
            const Span& span = timeline.spans()[id];
            if (span.step != step || span.op.kind == OpKind::Reshard) continue;
            if (span.label == 0) ++row.count; // not the copies of what came before
            row.total += span.duration();
            row.hidden += computing[static_cast<std::size_t>(track.rank)].within(span.start, span.end);
        }
    }
    for (const Gap& gap : report->gaps) {
        if (gap.cause != IdleCause::Collective || gap.blamed == noSpan) continue;
        Row& row = ranks[static_cast<std::size_t>(gap.rank)][timeline.spans()[gap.blamed].op.kind == OpKind::Unshard ? 0 : 1];
        row.exposed += gap.end - gap.start;
        if (row.longestAwaited != noSpan && gap.end - gap.start <= row.longest) continue;
        row.longest = gap.end - gap.start;
        row.longestAwaited = gap.blamed;
    }
    std::vector<CollectiveVolume> volumes;
    const bool sized = run.schedule && run.costs && std::any_of(run.costs->memory.begin(), run.costs->memory.end(), [](const StageMemory& memory) { return memory.weight > 0; });
    if (sized) volumes = collectiveVolumes(*run.schedule, *run.costs);
    AnalysisRows out;
    Nanos total = 0, exposed = 0;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
        for (std::size_t kind = 0; kind < 2; ++kind) {
            const Row& row = ranks[rank][kind];
            if (row.count == 0) continue;
            const AnalysisCell counted = countedBytes(timeline, step, static_cast<int>(rank), kind == 0 ? "weights received" : "gradients received");
            const auto bytes = !std::holds_alternative<std::monostate>(counted) ? counted : rank < volumes.size() ? AnalysisCell(std::int64_t{kind == 0 ? volumes[rank].gathered : volumes[rank].reduced})
                                                                                                                  : AnalysisCell();
            out.rows.push_back({static_cast<std::int64_t>(rank), std::string(kind == 0 ? "gather" : "reduce"), row.count, bytes, row.total, row.hidden, row.exposed});
            out.ops.push_back(row.longestAwaited);
            total += row.total;
            exposed += row.exposed;
        }
    Nanos begin = report->windowBegin, end = report->windowEnd; // of the step, with what is before the first and after the last op
    for (const StepMark& mark : timeline.stepMarks())
        if (mark.step == step) {
            begin = std::min(begin, mark.begin);
            end = std::max(end, mark.end);
        }
    const auto text = [&](Nanos time) { return formatDuration(time, timeline.timeUnit()); };
    if (total > 0)
        out.sentence = fmt::format("ranks wait {} for gathers and reductions, which take {}; with them and the optimizer the step takes {}, its ops alone {}", text(exposed), text(total),
                                   text(end - begin), text(report->makespan()));
    return out;
}

std::string unknownWithoutCollectives(const Run& run)
{
    for (const Track& track : run.timeline->tracks())
        if (track.lane == Lane::Gather || track.lane == Lane::Reduce) return {};
    return "this run gathers no weights and reduces no gradients beside compute";
}

} // namespace

extern const AnalysisInfo collectives;
const AnalysisInfo collectives{"collectives", "Gathers and reductions, hidden and exposed", collectiveColumns, unknownWithoutCollectives, collectiveRows};

} // namespace stagewright::analyses
