#include "widgets/timeline/lane.h"

#include <algorithm>

namespace stagewright {

void LaneData::append(const Span& span, SpanId id, Nanos origin, int tint)
{
    constexpr Nanos longest = (Nanos(1) << 44) - 1;
    Nanos begin = std::max<Nanos>(0, span.start - origin);
    const Nanos end = std::max(begin, span.end - origin);
    bool lower = false;
    if (!m_slices.empty()) {
        Slice& mate = m_slices.back();
        lower = mate.lower == 0 && mate.begin() == begin && mate.end() == end && end - begin > 1;
        if (lower) {
            mate.upper = 1;
            mate.length = static_cast<std::uint64_t>((end - begin) / 2) & ((1ull << 44) - 1);
            begin = mate.end();
        }
        begin = std::max(begin, m_slices.back().begin());
        Slice& before = m_slices.back();
        if (before.end() > begin) before.length = static_cast<std::uint64_t>(begin - before.begin()) & ((1ull << 44) - 1);
    }
    Slice slice;
    slice.start = static_cast<std::uint64_t>(begin) & ((1ull << 54) - 1);
    slice.lower = lower ? 1 : 0;
    slice.tint = static_cast<std::uint64_t>(tint % 4) & 3u;
    slice.length = static_cast<std::uint64_t>(std::clamp<Nanos>(end - begin, 0, longest)) & ((1ull << 44) - 1);
    slice.kind = static_cast<std::uint64_t>(span.op.kind) & 31u;
    slice.discarded = (span.flags & SpanDiscarded) != 0 ? 1 : 0;
    if (span.op.microbatch >= 0 && span.op.microbatch < static_cast<int>(Slice::noMicrobatch)) {
        slice.microbatch = static_cast<std::uint64_t>(span.op.microbatch) & Slice::noMicrobatch;
    }
    const std::size_t at = m_slices.size();
    m_slices.push_back(slice);

    if (at == 0) m_firstSpan = id;
    if (m_ids.empty()) {
        if (id == m_firstSpan + at) return;
        m_ids.resize(at); // no longer consecutive: write the ids out
        for (std::size_t i = 0; i < at; ++i) m_ids[i] = m_firstSpan + static_cast<SpanId>(i);
    }
    m_ids.push_back(id);
}

TimeSpan LaneData::drawn(std::size_t slice) const
{
    const Slice& own = m_slices[slice];
    if (own.upper != 0 && slice + 1 < m_slices.size()) return {own.begin(), m_slices[slice + 1].end()};
    if (own.lower != 0 && slice > 0) return {m_slices[slice - 1].begin(), own.end()};
    return {own.begin(), own.end()};
}

void LaneData::buildPyramid()
{
    m_pyramid.extend(m_slices);
}

SpanId LaneData::spanOf(std::size_t slice) const
{
    if (slice >= m_slices.size()) return noSpan;
    return m_ids.empty() ? m_firstSpan + static_cast<SpanId>(slice) : m_ids[slice];
}

std::size_t LaneData::sliceOf(SpanId span) const
{
    if (m_slices.empty()) return 0;
    if (m_ids.empty()) {
        return span >= m_firstSpan && span - m_firstSpan < m_slices.size() ? span - m_firstSpan : m_slices.size();
    }
    const auto at = std::lower_bound(m_ids.begin(), m_ids.end(), span); // ids ascend with the spans of a track
    return at != m_ids.end() && *at == span ? static_cast<std::size_t>(at - m_ids.begin()) : m_slices.size();
}

std::size_t LaneData::firstEndingAfter(Nanos t) const
{
    const auto at = std::partition_point(m_slices.begin(), m_slices.end(), [t](const Slice& s) { return s.end() <= t; });
    return static_cast<std::size_t>(at - m_slices.begin());
}

std::size_t LaneData::firstBeginningAt(Nanos t) const
{
    const auto at = std::partition_point(m_slices.begin(), m_slices.end(), [t](const Slice& s) { return s.begin() < t; });
    return static_cast<std::size_t>(at - m_slices.begin());
}

std::size_t LaneData::memoryUse() const
{
    return m_slices.capacity() * sizeof(Slice) + m_ids.capacity() * sizeof(SpanId) + m_pyramid.memoryUse();
}

} // namespace stagewright
