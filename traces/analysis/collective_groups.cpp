#include "traces/analysis/collective_groups.h"

#include <algorithm>

#include "traces/analysis/kernel_class.h"

namespace stagewright {

namespace {

bool isTie(const Timeline& timeline, const Edge& edge)
{
    if (edge.kind != EdgeKind::Transfer || edge.from == noSpan) return false;
    const Track& from = timeline.trackOf(edge.from);
    const Track& to = timeline.trackOf(edge.to);
    const bool messages = isMessageLane(from.lane) || from.lane == Lane::Compute || to.lane == Lane::Compute;
    return !messages && from.rank != to.rank;
}

CollectiveParts partsOf(const Timeline& timeline, SpanId span, SpanId last, std::size_t others)
{
    const Span& own = timeline.spans()[span];
    const Nanos entered = std::clamp(timeline.spans()[last].start, own.start, own.end);
    return {entered - own.start, own.end - entered, last, static_cast<int>(others) + 1};
}

std::vector<SpanId> othersOf(const Timeline& timeline, SpanId last)
{
    std::vector<SpanId> others;
    for (const Edge& edge : timeline.edgesFrom(last))
        if (isTie(timeline, edge)) others.push_back(edge.to);
    return others;
}

} // namespace

std::optional<CollectiveParts> collectivePartsOf(const Timeline& timeline, SpanId span)
{
    SpanId last = span;
    for (const Edge& edge : timeline.edgesInto(span))
        if (isTie(timeline, edge)) last = edge.from;
    const std::size_t others = othersOf(timeline, last).size();
    return others > 0 ? std::optional(partsOf(timeline, span, last, others)) : std::nullopt;
}

Nanos othersWaitFor(const Timeline& timeline, SpanId span)
{
    Nanos sum = 0;
    for (const SpanId other : othersOf(timeline, span)) sum += partsOf(timeline, other, span, 0).waiting;
    return sum;
}

CollectiveGroups::CollectiveGroups(const Timeline& timeline) : m_timeline(timeline)
{
    for (const Edge& edge : timeline.edges()) {
        if (!isTie(timeline, edge)) continue;
        m_others[edge.from].push_back(edge.to);
        m_lastOf[edge.from] = edge.from;
        m_lastOf[edge.to] = edge.from;
    }
}

std::optional<CollectiveParts> CollectiveGroups::of(SpanId span) const
{
    const auto found = m_lastOf.find(span);
    if (found == m_lastOf.end()) return std::nullopt;
    return partsOf(m_timeline, span, found->second, m_others.at(found->second).size());
}

std::optional<double> busFactor(std::string_view operation, int ranks)
{
    if (ranks < 1) return std::nullopt;
    const double others = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
    const std::string_view name = operationCalled(operation);
    if (name == "AllReduce") return 2 * others;
    if (name == "AllGather" || name == "ReduceScatter" || name == "AllToAll" || name == "Gather" || name == "Scatter")
        return others;
    if (name == "Broadcast" || name == "Reduce") return 1;
    return std::nullopt;
}

} // namespace stagewright
