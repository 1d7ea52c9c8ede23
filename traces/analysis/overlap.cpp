#include "traces/analysis/overlap.h"

#include <algorithm>

#include "schedules/model/kinds.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/coverage.h"
#include "traces/analysis/step_context.h"

namespace stagewright {

namespace {

// A rank's occupied time. Fillers are wanted idle, not work.
Coverage occupiedBy(const StepOps& ops, int rank)
{
    Coverage occupied;
    for (const SpanId id : ops.all(rank)) {
        const Span& span = ops.timeline().spans()[id];
        if (!isDelay(span.op.kind)) occupied.add(span.start, span.end);
    }
    return occupied;
}

} // namespace

OverlapReport analyseOverlap(const StepOps& ops)
{
    const Timeline& timeline = ops.timeline();
    OverlapReport report;
    const auto ranks = static_cast<std::size_t>(std::max(0, timeline.ranks()));
    report.commByRank.resize(ranks);
    report.exposedByRank.resize(ranks);
    if (ops.empty()) return report;
    for (int rank = 0; rank < ops.ranks(); ++rank) {
        Coverage occupied = occupiedBy(ops, rank);
        const auto r = static_cast<std::size_t>(rank);
        for (const SpanId id : ops.busy(rank)) {
            for (const Edge& edge : timeline.edgesInto(id)) {
                if (edge.kind != EdgeKind::Data || ops.rankOf(edge.from) == rank) continue;
                const Nanos produced = timeline.spans()[edge.from].end;
                const Nanos transfer = std::max<Nanos>(0, edge.arrival - produced);
                const Nanos hidden = occupied.within(produced, produced + transfer);
                ++report.messages;
                report.commTime += transfer;
                report.hiddenTime += hidden;
                report.commByRank[r] += transfer;
                report.exposedByRank[r] += transfer - hidden;
            }
        }
    }
    report.exposedTime = report.commTime - report.hiddenTime;
    return report;
}

namespace analyses {

namespace {

std::vector<TableColumn> overlapColumns()
{
    return {
        {"rank", "Receiving rank", ColumnKind::Whole},
        {"comm_ns", "Communication", ColumnKind::Time, "From the producer's end to the arrival, summed over messages."},
        {"hidden_ns", "Hidden", ColumnKind::Time, "The part in which the receiving rank is busy."},
        {"exposed_ns", "Exposed", ColumnKind::Time, "The part in which the receiving rank is not busy."}};
}

Result<AnalysisRows> overlapRows(const StepContext& context)
{
    const OverlapReport& report = context.overlap();
    AnalysisRows out;
    for (std::size_t rank = 0; rank < report.commByRank.size(); ++rank)
        out.rows.push_back({static_cast<std::int64_t>(rank), report.commByRank[rank],
                            report.commByRank[rank] - report.exposedByRank[rank], report.exposedByRank[rank]});
    return out;
}

} // namespace

extern const AnalysisInfo overlap;
const AnalysisInfo overlap{"overlap", "Communication hidden and exposed", overlapColumns, unknownWithoutMessages,
                           overlapRows};

} // namespace analyses

} // namespace stagewright
