#include "traces/analysis/critical_path.h"

#include <algorithm>
#include <unordered_set>

#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/step_context.h"

namespace stagewright {

std::vector<CriticalLink> criticalPath(const StepOps& ops)
{
    if (!ops.timeline().missingRanks().empty()) return {};
    std::vector<CriticalLink> path;
    if (ops.empty()) return path;
    const auto spans = ops.timeline().spans();

    SpanId at = noSpan;
    for (int rank = 0; rank < ops.ranks(); ++rank)
        for (const SpanId id : ops.busy(rank))
            if (at == noSpan || spans[id].end > spans[at].end) at = id;

    // The span of the rank that ended last before `span` began.
    const auto before = [&](SpanId id) {
        const auto& all = ops.all(ops.rankOf(id));
        auto place = std::lower_bound(all.begin(), all.end(), spans[id].start,
                                      [&](SpanId other, Nanos time) { return spans[other].start < time; });
        while (place != all.end() && *place != id) ++place; // zero-length spans at the same time come before it
        while (place != all.begin()) {
            --place;
            if (spans[*place].end <= spans[id].start) return *place;
        }
        return noSpan;
    };

    std::unordered_set<SpanId> seen; // spans without duration could close a cycle
    while (at != noSpan && seen.insert(at).second) {
        const Nanos start = spans[at].start;
        SpanId from = before(at);
        if (from != noSpan && (spans[from].start < ops.windowBegin() || seen.contains(from))) from = noSpan;
        Nanos released = from == noSpan ? ops.windowBegin() : spans[from].end;
        for (const Input& input : ops.inputs(at)) {
            const Span& producer = spans[input.from];
            if (producer.end > start || producer.start < ops.windowBegin() || seen.contains(input.from)) continue;
            const Nanos arrival = std::min(input.arrival, start);
            if (from != noSpan && arrival <= released) continue;
            from = input.from;
            released = arrival;
        }
        CriticalLink link;
        link.span = at;
        link.waitBefore = start - (from == noSpan ? ops.windowBegin() : spans[from].end);
        link.crossesRank = from != noSpan && ops.rankOf(from) != ops.rankOf(at);
        path.push_back(link);
        at = from;
    }
    std::reverse(path.begin(), path.end());
    return path;
}

namespace analyses {

namespace {

std::vector<TableColumn> criticalPathColumns()
{
    return {{"op", "Op"},
            {"rank", "Rank", ColumnKind::Whole},
            {"start_ns", "Start", ColumnKind::Time},
            {"duration_ns", "Duration", ColumnKind::Time},
            {"wait_before_ns", "Wait before it", ColumnKind::Time,
             "Transfer and launch, from the end of the previous op on the path."}};
}

Result<AnalysisRows> criticalPathRows(const StepContext& context)
{
    const Timeline& timeline = context.timeline();
    AnalysisRows out;
    for (const CriticalLink& link : context.criticalPath()) {
        const Span& span = timeline.spans()[link.span];
        out.rows.push_back({timeline.nameOf(span), std::int64_t{timeline.trackOf(link.span).rank}, span.start,
                            span.duration(), link.waitBefore});
        out.ops.push_back(link.span);
    }
    return out;
}

} // namespace

extern const AnalysisInfo critical_path;
const AnalysisInfo critical_path{"critical_path", "Critical path across ranks", criticalPathColumns,
                                 unknownWithoutAllRanks, criticalPathRows};

} // namespace analyses

} // namespace stagewright
