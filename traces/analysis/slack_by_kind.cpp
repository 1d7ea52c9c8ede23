// Slack by rank and kind of op: how many have none, and the least and most there is.
#include <algorithm>
#include <map>

#include "schedules/model/kinds.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/step_context.h"

namespace stagewright::analyses {

namespace {

std::vector<TableColumn> slackColumns()
{
    return {{"rank", "Rank", ColumnKind::Whole},
            {"op", "Op"},
            {"ops", "Ops", ColumnKind::Count},
            {"without_slack", "Without slack", ColumnKind::Count, "Ops that decide when the step ends."},
            {"least_ns", "Least", ColumnKind::Time},
            {"most_ns", "Most", ColumnKind::Time},
            {"loosest", "Loosest", ColumnKind::Text, "The op with the most slack; choosing a row goes there."}};
}

Result<AnalysisRows> slackRows(const StepContext& context)
{
    struct Group {
        std::int64_t ops = 0;
        std::int64_t critical = 0;
        Nanos least = 0;
        Nanos most = 0;
        SpanId loosest = noSpan;
    };
    const Timeline& timeline = context.timeline();
    std::map<std::pair<int, OpKind>, Group> groups;
    for (const OpSlack& op : context.slack()) {
        Group& of = groups[{op.rank, timeline.spans()[op.span].op.kind}];
        of.least = of.ops == 0 ? op.slack : std::min(of.least, op.slack);
        if (of.ops == 0 || op.slack > of.most) {
            of.most = op.slack;
            of.loosest = op.span;
        }
        ++of.ops;
        of.critical += op.slack == 0;
    }
    AnalysisRows out;
    for (const auto& [key, of] : groups) {
        out.rows.push_back({std::int64_t{key.first}, std::string(ruleOf(key.second).text), of.ops, of.critical,
                            of.least, of.most, timeline.nameOf(timeline.spans()[of.loosest])});
        out.ops.push_back(of.loosest);
    }
    return out;
}

} // namespace

extern const AnalysisInfo slack_by_kind;
const AnalysisInfo slack_by_kind{"slack_by_kind", "Slack by rank and kind of op", slackColumns, unknownWithoutAllRanks,
                                 slackRows};

} // namespace stagewright::analyses
