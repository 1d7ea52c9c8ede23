#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "schedules/base/step_number.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/collective_groups.h"
#include "traces/analysis/device_time.h"
#include "traces/analysis/kernels.h"
#include "traces/analysis/step_context.h"
#include "traces/run/rank_places.h"

namespace stagewright {

namespace analyses {

namespace {

std::vector<TableColumn> stragglerColumns()
{
    return {
        {"rank", "Rank", ColumnKind::Whole},
        {"host", "Host", ColumnKind::Text, "Where the trace names it."},
        {"pipeline", "Pipeline", ColumnKind::Whole,
         "Place in its process group for pipeline parallelism, as the trace lists the groups; likewise the following."},
        {"data", "Data", ColumnKind::Whole},
        {"tensor", "Tensor", ColumnKind::Whole},
        {"expert", "Expert", ColumnKind::Whole},
        {"context", "Context", ColumnKind::Whole},
        {"waited_for_ns", "Waited for", ColumnKind::Time,
         "Sum over the collectives that it entered last: the time that the others had been in them."},
        {"last", "Last", ColumnKind::Count, "Collectives that it entered last."},
        {"computing_ns", "Computing", ColumnKind::Time, "A kernel runs whose class is not communication."},
        {"exposed_ns", "Exposed", ColumnKind::Time, "Communicating while nothing computes: of a rank that waits."}};
}

struct Late {
    Nanos waitedFor = 0;
    std::int64_t last = 0;
    SpanId worst = noSpan;
    Nanos worstWait = -1;
};

std::vector<Late> lateRanks(const Timeline& timeline, int step)
{
    std::vector<Late> late(static_cast<std::size_t>(std::max(0, timeline.ranks())));
    const auto spans = timeline.spans();
    const CollectiveGroups groups(timeline);
    for (const auto& [last, others] : groups.byLast()) {
        if (spans[last].step != step) continue;
        Nanos wait = 0;
        for (const SpanId other : others) wait += std::max<Nanos>(0, spans[last].start - spans[other].start);
        Late& rank = late[static_cast<std::size_t>(timeline.trackOf(last).rank)];
        rank.waitedFor += wait;
        ++rank.last;
        if (wait > rank.worstWait) rank.worst = last, rank.worstWait = wait;
    }
    return late;
}

TableCell placeCell(const RankPlace& place, ParallelDimension dimension)
{
    const int at = place.place[static_cast<std::size_t>(dimension)];
    return at < 0 ? TableCell() : TableCell(std::int64_t{at});
}

Result<AnalysisRows> stragglerRows(const StepContext& context)
{
    const Run& run = context.run();
    const auto late = lateRanks(context.timeline(), context.step());
    std::vector<RankDeviceTime> times(late.size()); // of a rank with several GPUs their sum
    for (const RankDeviceTime& device : analyseDeviceTime(context.timeline(), context.step())) {
        if (static_cast<std::size_t>(device.rank) >= times.size()) continue;
        RankDeviceTime& rank = times[static_cast<std::size_t>(device.rank)];
        rank.computing += device.computing;
        rank.communicating += device.communicating;
        rank.hidden += device.hidden;
        rank.graphs += device.graphs;
        rank.calls += device.calls;
    }
    auto places = placesOf(run);
    places.resize(late.size());
    std::vector<std::size_t> order(late.size());
    for (std::size_t r = 0; r < order.size(); ++r) order[r] = r;
    std::stable_sort(order.begin(), order.end(),
                     [&late](std::size_t a, std::size_t b) { return late[a].waitedFor > late[b].waitedFor; });
    AnalysisRows out;
    Nanos total = 0;
    std::map<std::string, Nanos> byHost;
    for (const std::size_t r : order) {
        const bool ran = times[r].calls > 0 && times[r].graphs == 0; // what graphs traced as a whole hold is unknown
        out.rows.push_back(
            {static_cast<std::int64_t>(r), places[r].host.empty() ? TableCell() : TableCell(places[r].host),
             placeCell(places[r], ParallelDimension::Pipeline), placeCell(places[r], ParallelDimension::Data),
             placeCell(places[r], ParallelDimension::Tensor), placeCell(places[r], ParallelDimension::Expert),
             placeCell(places[r], ParallelDimension::Context), late[r].waitedFor, late[r].last,
             ran ? TableCell(times[r].computing) : TableCell(), ran ? TableCell(times[r].exposed()) : TableCell()});
        out.ops.push_back(late[r].worst);
        total += late[r].waitedFor;
        if (!places[r].host.empty()) byHost[places[r].host] += late[r].waitedFor;
    }
    if (total > 0) {
        const std::size_t first = order.front();
        out.sentence =
            fmt::format("others wait {} for rank {}, {} of all time spent waiting for a last rank",
                        formatDuration(late[first].waitedFor), first,
                        formatPercent(static_cast<double>(late[first].waitedFor) / static_cast<double>(total)));
        if (byHost.size() > 1) {
            const auto host = std::max_element(byHost.begin(), byHost.end(),
                                               [](const auto& a, const auto& b) { return a.second < b.second; });
            out.sentence +=
                fmt::format("; {} of them for ranks of host {}",
                            formatPercent(static_cast<double>(host->second) / static_cast<double>(total)), host->first);
        }
    }
    return out;
}

std::string unknownWithoutCommunicators(const Run& run)
{
    const Timeline& timeline = *run.timeline;
    bool any = false;
    for (const Edge& edge : timeline.edges()) {
        if (edge.kind != EdgeKind::Transfer || edge.from == noSpan) continue;
        const Lane lane = timeline.trackOf(edge.from).lane;
        if ((lane != Lane::Kernel && lane != Lane::Other) || timeline.trackOf(edge.to).lane != lane) continue;
        if (timeline.spans()[edge.from].step != outsideSteps) return {};
        any = true;
    }
    return any ? "no collective of several ranks is known to be of a step"
               : "no collective of several ranks is recorded";
}

} // namespace

extern const AnalysisInfo stragglers;
const AnalysisInfo stragglers{"stragglers",      "Ranks that others wait for",
                              stragglerColumns,  unknownWithoutCommunicators,
                              stragglerRows,     false,
                              ReportPart::Device};

} // namespace analyses

} // namespace stagewright
