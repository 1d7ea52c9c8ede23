#include "traces/analysis/slack.h"

#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/step_context.h"

namespace stagewright {

std::vector<OpSlack> slackOf(const StepOps& ops, const StepGraph& graph)
{
    std::vector<OpSlack> out;
    if (ops.empty() || !ops.timeline().missingRanks().empty()) return out;
    const std::vector<Nanos> slack = graph.slack();
    for (int rank = 0; rank < ops.ranks(); ++rank)
        for (const SpanId id : ops.busy(rank)) {
            const SlotId slot = graph.slotOf(id);
            if (slot != noSlot) out.push_back({id, rank, slack[slot]});
        }
    return out;
}

namespace analyses {

namespace {

std::vector<TableColumn> slackOfOpColumns()
{
    return {{"op", "Op"},
            {"rank", "Rank", ColumnKind::Whole},
            {"start_ns", "Start", ColumnKind::Time},
            {"slack_ns", "Slack", ColumnKind::Time,
             "How much later the op could have started without the step taking longer."}};
}

Result<AnalysisRows> slackOfOpRows(const StepContext& context)
{
    const Timeline& timeline = context.timeline();
    AnalysisRows out;
    for (const OpSlack& op : context.slack()) {
        const Span& span = timeline.spans()[op.span];
        out.rows.push_back({timeline.nameOf(span), std::int64_t{op.rank}, span.start, op.slack});
        out.ops.push_back(op.span);
    }
    return out;
}

} // namespace

extern const AnalysisInfo slack;
const AnalysisInfo slack{"slack", "Slack of every op", slackOfOpColumns, unknownWithoutAllRanks, slackOfOpRows};

} // namespace analyses

} // namespace stagewright
