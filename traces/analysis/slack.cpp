#include "traces/analysis/slack.h"

#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/step_graph.h"

namespace stagewright {

std::vector<OpSlack> slackOf(const Timeline& timeline, int step)
{
    std::vector<OpSlack> out;
    const StepOps ops(timeline, step);
    if (ops.empty()) return out;
    const StepGraph graph(timeline, ops);
    const std::vector<Nanos> slack = graph.slack();
    for (int rank = 0; rank < ops.ranks(); ++rank)
        for (const SpanId id : ops.busy(rank)) {
            const SlotId slot = graph.slotOf(id);
            if (slot != noSlot) out.push_back({id, slack[slot]});
        }
    return out;
}

namespace analyses {

namespace {

Result<AnalysisTable> slackTable(const Timeline& timeline, int step)
{
    AnalysisTable table;
    table.columns = {{"op", "Op", ""}, {"rank", "Rank", ""}, {"start_ns", "Start", "ns"}, {"slack_ns", "Slack", "ns"}};
    for (const OpSlack& op : slackOf(timeline, step)) {
        const Span& span = timeline.spans()[op.span];
        table.rows.push_back({timeline.nameOf(span), std::int64_t{timeline.trackOf(op.span).rank}, span.start, op.slack});
    }
    return table;
}

bool hasSpans(const Timeline& timeline)
{
    return !timeline.empty();
}

} // namespace

extern const AnalysisInfo slack;
const AnalysisInfo slack{"slack", "Slack of every op", "busy spans", hasSpans, slackTable};

} // namespace analyses

} // namespace stagewright
