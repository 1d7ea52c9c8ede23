// LaneData: the slices of one drawn row, 16 bytes each, sorted and without overlap, with a pyramid beside them.
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/kinds.h"
#include "schedules/timeline/timeline.h"
#include "widgets/timeline/pyramid.h"

namespace stagewright {

// Times are axis time (≥ 0). 54 bits of ns are 208 days; an op of more than 4.8 hours is stored as that long.
// An overlapped pair is two slices that halve its interval, so that lanes never overlap; it is drawn as one place over
// the whole interval, the first op above the second.
struct Slice {
    std::uint64_t start : 54 = 0;
    std::uint64_t kind : 5 = 0; // OpKind
    std::uint64_t discarded : 1 = 0;
    std::uint64_t upper : 1 = 0; // first op of a pair; the next slice is its second
    std::uint64_t lower : 1 = 0; // second op of a pair
    std::uint64_t tint : 2 = 0;  // chunk of its rank, or copy of its stage, modulo 4
    std::uint64_t length : 44 = 0;
    std::uint64_t microbatch : 20 = noMicrobatch;

    static constexpr std::uint64_t noMicrobatch = 0xfffff;

    Nanos begin() const { return static_cast<Nanos>(start); }
    Nanos end() const { return static_cast<Nanos>(start + length); }
    OpKind opKind() const { return static_cast<OpKind>(kind); }
    int microbatchOr(int none) const { return microbatch == noMicrobatch ? none : static_cast<int>(microbatch); }
};
static_assert(sizeof(Slice) == 16);

struct TimeSpan {
    Nanos begin = 0;
    Nanos end = 0;
};

class LaneData {
public:
    LaneData() = default;

    // Slices must come in order of begin; one that begins before its predecessor's end is cut at it. O(1) amortised.
    void append(const Span& span, SpanId id, Nanos origin, int tint = 0);
    void reserve(std::size_t slices) { m_slices.reserve(slices); }
    void buildPyramid(); // or extends it over slices appended since

    const std::vector<Slice>& slices() const { return m_slices; }
    const Pyramid& pyramid() const { return m_pyramid; }
    SpanId spanOf(std::size_t slice) const;
    std::size_t sliceOf(SpanId span) const; // size() where the lane has no such span
    std::size_t size() const { return m_slices.size(); }
    // What the slice is drawn over: its own interval, or that of its pair.
    TimeSpan drawn(std::size_t slice) const;
    Nanos begin() const { return m_slices.empty() ? 0 : m_slices.front().begin(); }
    Nanos end() const { return m_slices.empty() ? 0 : m_slices.back().end(); }

    // First slice that ends after t. O(log slices).
    std::size_t firstEndingAfter(Nanos t) const;
    // First slice that begins at t or later. O(log slices).
    std::size_t firstBeginningAt(Nanos t) const;
    std::size_t memoryUse() const; // bytes of slices, ids and pyramid

private:
    std::vector<Slice> m_slices;
    SpanId m_firstSpan = noSpan;
    std::vector<SpanId> m_ids; // empty while the ids are consecutive
    Pyramid m_pyramid;
};

} // namespace stagewright
