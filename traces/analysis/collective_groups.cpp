#include "traces/analysis/collective_groups.h"

#include <algorithm>

#include "traces/analysis/kernel_class.h"

namespace stagewright {

CollectiveGroups::CollectiveGroups(const Timeline& timeline) : m_timeline(timeline)
{
    for (const Edge& edge : timeline.edges()) {
        if (edge.kind != EdgeKind::Transfer || edge.from == noSpan) continue;
        const Track& from = timeline.trackOf(edge.from);
        const Track& to = timeline.trackOf(edge.to);
        const bool messages = isMessageLane(from.lane) || from.lane == Lane::Compute || to.lane == Lane::Compute;
        if (messages || from.rank == to.rank) continue;
        m_others[edge.from].push_back(edge.to);
        m_lastOf[edge.from] = edge.from;
        m_lastOf[edge.to] = edge.from;
    }
}

std::optional<CollectiveParts> CollectiveGroups::of(SpanId span) const
{
    const auto found = m_lastOf.find(span);
    if (found == m_lastOf.end()) return std::nullopt;
    const SpanId last = found->second;
    const Span& own = m_timeline.spans()[span];
    const Nanos entered = std::clamp(m_timeline.spans()[last].start, own.start, own.end);
    return CollectiveParts{entered - own.start, own.end - entered, last,
                           static_cast<int>(m_others.at(last).size()) + 1};
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
