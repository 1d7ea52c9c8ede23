// The ops of a step by kind, stage and rank: how many, and how long they took.
#include <algorithm>
#include <map>
#include <tuple>

#include "schedules/model/kinds.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/step_context.h"

namespace stagewright::analyses {

namespace {

std::vector<TableColumn> opColumns()
{
    return {{"op", "Op"},
            {"stage", "Stage", ColumnKind::Whole},
            {"rank", "Rank", ColumnKind::Whole},
            {"count", "Count", ColumnKind::Count},
            {"mean_ns", "Mean", ColumnKind::Time, "Total over count."},
            {"shortest_ns", "Shortest", ColumnKind::Time},
            {"longest_ns", "Longest", ColumnKind::Time, "The longest of them; choosing a row goes there."},
            {"total_ns", "Total", ColumnKind::Time}};
}

Result<AnalysisRows> opRows(const StepContext& context)
{
    struct Group {
        std::int64_t count = 0;
        Nanos total = 0, least = 0, most = 0;
        SpanId longest = noSpan;
    };
    const Timeline& timeline = context.timeline();
    std::map<std::tuple<OpKind, int, int>, Group> groups; // kind, stage, rank
    for (const Track& track : timeline.tracks()) {
        if (track.lane != Lane::Compute) continue;
        const auto [first, last] = timeline.stepRange(track, context.step());
        for (SpanId id = first; id < last; ++id) {
            const Span& span = timeline.spans()[id];
            if (span.step != context.step() || span.label != 0) continue;
            Group& group = groups[{span.op.kind, span.op.stage, track.rank}];
            group.least = group.count == 0 ? span.duration() : std::min(group.least, span.duration());
            if (group.count == 0 || span.duration() > group.most) {
                group.most = span.duration();
                group.longest = id;
            }
            group.total += span.duration();
            ++group.count;
        }
    }
    AnalysisRows out;
    for (const auto& [key, group] : groups) {
        const auto& [kind, stage, rank] = key;
        out.rows.push_back({std::string(ruleOf(kind).text), std::int64_t{stage}, std::int64_t{rank}, group.count,
                            group.total / group.count, group.least, group.most, group.total});
        out.ops.push_back(group.longest);
    }
    return out;
}

} // namespace

extern const AnalysisInfo ops;
const AnalysisInfo ops{"ops", "Ops by kind, stage and rank", opColumns, unknownWithoutOps, opRows};

} // namespace stagewright::analyses
