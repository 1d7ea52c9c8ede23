#include "schedules/timeline/timeline.h"

#include <algorithm>
#include <array>

namespace stagewright {

std::string_view toText(Provenance provenance)
{
    switch (provenance) {
    case Provenance::Simulated: return "simulated";
    case Provenance::Measured: return "measured";
    case Provenance::Composed: return "composed";
    case Provenance::Imported: break;
    }
    return "imported";
}

const Track* Timeline::trackOf(int rank, Lane lane) const
{
    const auto found = std::lower_bound(
        m_tracks.begin(), m_tracks.end(), std::pair(rank, lane),
        [](const Track& track, const std::pair<int, Lane>& key) { return std::pair(track.rank, track.lane) < key; });
    return found != m_tracks.end() && found->rank == rank && found->lane == lane ? &*found : nullptr;
}

const Track& Timeline::trackOf(SpanId span) const
{
    // The tracks hold the spans in their own order: the last track that starts at or before the span and isn't empty.
    auto after = std::upper_bound(m_tracks.begin(), m_tracks.end(), span,
                                  [](SpanId id, const Track& track) { return id < track.end; });
    return *after;
}

std::pair<SpanId, SpanId> Timeline::stepRange(const Track& track, int step) const
{
    const auto index = static_cast<std::uint32_t>(&track - m_tracks.data());
    const auto found = std::lower_bound(m_stepRanges.begin(), m_stepRanges.end(), std::pair(index, step),
                                        [](const StepRange& range, const std::pair<std::uint32_t, int>& key) {
                                            return std::pair(range.track, range.step) < key;
                                        });
    if (found == m_stepRanges.end() || found->track != index || found->step != step) return {track.begin, track.begin};
    return {found->first, found->last};
}

std::span<const Edge> Timeline::edgesInto(SpanId span) const
{
    const auto begin = std::lower_bound(m_edges.begin(), m_edges.end(), span,
                                        [](const Edge& edge, SpanId id) { return edge.to < id; });
    auto end = begin;
    while (end != m_edges.end() && end->to == span) ++end;
    return std::span<const Edge>(m_edges).subspan(static_cast<std::size_t>(begin - m_edges.begin()),
                                                  static_cast<std::size_t>(end - begin));
}

std::vector<Edge> Timeline::edgesFrom(SpanId span) const
{
    auto at = std::lower_bound(m_edgesByFrom.begin(), m_edgesByFrom.end(), span,
                               [this](std::uint32_t edge, SpanId id) { return m_edges[edge].from < id; });
    std::vector<Edge> out;
    for (; at != m_edgesByFrom.end() && m_edges[*at].from == span; ++at) out.push_back(m_edges[*at]);
    return out;
}

std::span<const MemoryEvent> Timeline::memoryOf(int rank) const
{
    const auto r = static_cast<std::size_t>(rank);
    if (rank < 0 || r + 1 >= m_memoryByRank.size()) return {};
    return std::span<const MemoryEvent>(m_memory).subspan(m_memoryByRank[r], m_memoryByRank[r + 1] - m_memoryByRank[r]);
}

std::string Timeline::nameOf(const Span& span) const
{
    return span.label != 0 ? m_labels[span.label] : toText(span.op);
}

std::vector<std::uint16_t> sublanes(std::span<const Span> spans)
{
    std::vector<std::uint16_t> out;
    out.reserve(spans.size());
    std::vector<Nanos> freeAt; // by sub-lane
    for (const Span& span : spans) {
        std::size_t lane = 0;
        while (lane < freeAt.size() && freeAt[lane] > span.start) ++lane;
        if (lane == freeAt.size()) freeAt.push_back(span.end);
        freeAt[lane] = std::max(span.end, span.start);
        out.push_back(static_cast<std::uint16_t>(std::min<std::size_t>(lane, 0xffff)));
    }
    return out;
}

} // namespace stagewright
