#include "widgets/timeline/lane.h"

#include <algorithm>

namespace stagewright {

namespace {

constexpr std::uint64_t lengthMask = (1ull << 44) - 1;

bool isMate(const Slice& mate, Nanos begin, Nanos end)
{
    return mate.lower == 0 && mate.upper == 0 && mate.begin() == begin && mate.end() == end && end - begin > 1;
}

} // namespace

LaneData::LaneData() : m_body(std::make_shared<Body>()) {}

LaneData::Body& LaneData::own()
{
    if (m_body.use_count() > 1) m_body = std::make_shared<Body>(*m_body);
    return *m_body;
}

void LaneData::reserve(std::size_t slices) { own().slices.reserve(slices); }

void LaneData::push(const Span& span, Nanos begin, Nanos end, bool lower, int tint, int ink)
{
    constexpr Nanos longest = static_cast<Nanos>(lengthMask);
    Slice slice;
    slice.start = static_cast<std::uint64_t>(begin) & ((1ull << 54) - 1);
    slice.lower = lower ? 1 : 0;
    slice.tint = static_cast<std::uint64_t>(tint % 4) & 3u;
    slice.length = static_cast<std::uint64_t>(std::clamp<Nanos>(end - begin, 0, longest)) & lengthMask;
    slice.kind = (ink >= 0 ? static_cast<std::uint64_t>(ink) : static_cast<std::uint64_t>(span.op.kind)) & 31u;
    slice.discarded = (span.flags & SpanDiscarded) != 0 ? 1 : 0;
    if (span.op.microbatch >= 0 && span.op.microbatch < static_cast<int>(Slice::noMicrobatch)) {
        slice.microbatch = static_cast<std::uint64_t>(span.op.microbatch) & Slice::noMicrobatch;
    }
    m_body->slices.push_back(slice);
}

void LaneData::append(const Span& span, SpanId id, Nanos origin, int tint, int ink)
{
    std::vector<Slice>& slices = own().slices;
    Nanos begin = std::max<Nanos>(0, span.start - origin);
    const Nanos end = std::max(begin, span.end - origin);
    bool lower = false;
    if (!slices.empty()) {
        Slice& mate = slices.back();
        lower = isMate(mate, begin, end);
        if (lower) {
            mate.upper = 1;
            mate.length = static_cast<std::uint64_t>((end - begin) / 2) & lengthMask;
            begin = mate.end();
        }
        begin = std::max(begin, slices.back().begin());
        Slice& before = slices.back();
        if (before.end() > begin) before.length = static_cast<std::uint64_t>(begin - before.begin()) & lengthMask;
    }
    const std::size_t at = slices.size();
    push(span, begin, end, lower, tint, ink);

    if (at == 0) m_firstSpan = id;
    if (m_ids.empty()) {
        if (id == m_firstSpan + at) {
            ++m_idCount;
            return;
        }
        m_ids.resize(at); // no longer consecutive: write the ids out
        for (std::size_t i = 0; i < at; ++i) m_ids[i] = m_firstSpan + static_cast<SpanId>(i);
    }
    m_ids.push_back(id);
}

void LaneData::appendLoose(const Span& span, Nanos origin, int tint, int ink)
{
    Body& body = own();
    Nanos begin = std::max<Nanos>(0, span.start - origin);
    const Nanos end = std::max(begin, span.end - origin);
    bool lower = false;
    if (!body.slices.empty() && !body.late) {
        Slice& mate = body.slices.back();
        lower = isMate(mate, begin, end);
        if (lower) {
            mate.upper = 1;
            mate.length = static_cast<std::uint64_t>((end - begin) / 2) & lengthMask;
            begin = mate.end();
        }
        body.late = begin < mate.end();
    }
    push(span, begin, end, lower, tint, ink);
}

// Sorts slices without ids, without overlap; finds pairs again.
void LaneData::arrange()
{
    Body& body = own();
    if (!body.late) return;
    body.late = false;
    for (std::size_t i = 0; i + 1 < body.slices.size(); ++i) { // pairs are whole intervals again
        Slice& upper = body.slices[i];
        Slice& lower = body.slices[i + 1];
        if (upper.upper == 0 || lower.lower == 0) continue;
        const Nanos begin = upper.begin(), end = lower.end();
        for (Slice* half : {&upper, &lower}) {
            half->start = static_cast<std::uint64_t>(begin) & ((1ull << 54) - 1);
            half->length = static_cast<std::uint64_t>(end - begin) & lengthMask;
            half->upper = half->lower = 0;
        }
    }
    std::stable_sort(body.slices.begin(), body.slices.end(),
                     [](const Slice& a, const Slice& b) { return a.begin() < b.begin(); });
    for (std::size_t i = 1; i < body.slices.size(); ++i) {
        Slice& before = body.slices[i - 1];
        Slice& slice = body.slices[i];
        if (isMate(before, slice.begin(), slice.end())) {
            const Nanos end = slice.end();
            before.upper = slice.lower = 1;
            before.length = static_cast<std::uint64_t>((end - before.begin()) / 2) & lengthMask;
            slice.start = static_cast<std::uint64_t>(before.end()) & ((1ull << 54) - 1);
            slice.length = static_cast<std::uint64_t>(end - before.end()) & lengthMask;
        } else if (before.end() > slice.begin()) {
            before.length = static_cast<std::uint64_t>(slice.begin() - before.begin()) & lengthMask;
        }
    }
    body.pyramid = {};
}

void LaneData::setOverview(int shift, std::vector<PaintBucket> buckets)
{
    Body& body = own();
    body.slices.clear();
    body.pyramid.assign(shift, std::move(buckets));
}

void LaneData::setIds(std::size_t first, std::vector<SpanId> ids)
{
    m_idsBegin = first;
    m_idCount = 0;
    m_firstSpan = noSpan;
    m_holes = std::find(ids.begin(), ids.end(), noSpan) != ids.end();
    m_ids = std::move(ids);
}

TimeSpan LaneData::drawn(std::size_t slice) const
{
    const auto& all = slices();
    const Slice& self = all[slice];
    if (self.upper != 0 && slice + 1 < all.size()) return {self.begin(), all[slice + 1].end()};
    if (self.lower != 0 && slice > 0) return {all[slice - 1].begin(), self.end()};
    return {self.begin(), self.end()};
}

void LaneData::buildPyramid()
{
    if (m_body->late) arrange();
    Body& body = own();
    body.pyramid.extend(body.slices, body.look);
}

SpanId LaneData::spanOf(std::size_t slice) const
{
    if (slice < m_idsBegin || slice >= idsEnd()) return noSpan;
    return m_ids.empty() ? m_firstSpan + static_cast<SpanId>(slice) : m_ids[slice - m_idsBegin];
}

std::size_t LaneData::sliceOf(SpanId span) const
{
    if (size() == 0 || span == noSpan) return size();
    if (m_ids.empty()) return span >= m_firstSpan && span - m_firstSpan < m_idCount ? span - m_firstSpan : size();
    // ids ascend with the spans of a track
    const auto at =
        m_holes ? std::find(m_ids.begin(), m_ids.end(), span) : std::lower_bound(m_ids.begin(), m_ids.end(), span);
    return at != m_ids.end() && *at == span ? m_idsBegin + static_cast<std::size_t>(at - m_ids.begin()) : size();
}

std::size_t LaneData::firstEndingAfter(Nanos t) const
{
    const auto& all = slices();
    const auto at = std::partition_point(all.begin(), all.end(), [t](const Slice& s) { return s.end() <= t; });
    return static_cast<std::size_t>(at - all.begin());
}

std::size_t LaneData::firstBeginningAt(Nanos t) const
{
    const auto& all = slices();
    const auto at = std::partition_point(all.begin(), all.end(), [t](const Slice& s) { return s.begin() < t; });
    return static_cast<std::size_t>(at - all.begin());
}

std::size_t LaneData::memoryUse() const
{
    return slices().capacity() * sizeof(Slice) + m_ids.capacity() * sizeof(SpanId) + pyramid().memoryUse();
}

} // namespace stagewright
