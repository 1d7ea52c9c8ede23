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

OverlapReport analyseOverlap(const StepOps& ops, std::span<const Crossing> crossings)
{
    OverlapReport report;
    const auto ranks = static_cast<std::size_t>(std::max(0, ops.timeline().ranks()));
    report.commByRank.resize(ranks);
    report.exposedByRank.resize(ranks);
    Coverage occupied;
    int of = -1; // whose it is
    for (const Crossing& crossing : crossings) {
        if (crossing.rank != of) occupied = occupiedBy(ops, of = crossing.rank);
        const Nanos transfer = crossing.arrival - crossing.produced;
        const Nanos hidden = occupied.within(crossing.produced, crossing.arrival);
        ++report.messages;
        report.commTime += transfer;
        report.hiddenTime += hidden;
        report.commByRank[static_cast<std::size_t>(of)] += transfer;
        report.exposedByRank[static_cast<std::size_t>(of)] += transfer - hidden;
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
