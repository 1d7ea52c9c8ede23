// LaneData: the slices of one drawn row, 16 bytes each, sorted and without overlap, with a pyramid beside them.
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/kinds.h"
#include "schedules/timeline/timeline.h"
#include "widgets/timeline/pyramid.h"

namespace stagewright {

// Times are axis time (≥ 0). 56 bits of ns are 833 days; an op of more than 4.8 hours is stored as that long.
struct Slice {
    std::uint64_t start : 56 = 0;
    std::uint64_t kind : 5 = 0; // OpKind
    std::uint64_t discarded : 1 = 0;
    std::uint64_t paired : 1 = 0;
    std::uint64_t spare : 1 = 0;
    std::uint64_t length : 44 = 0;
    std::uint64_t microbatch : 20 = noMicrobatch;

    static constexpr std::uint64_t noMicrobatch = 0xfffff;

    Nanos begin() const { return static_cast<Nanos>(start); }
    Nanos end() const { return static_cast<Nanos>(start + length); }
    OpKind opKind() const { return static_cast<OpKind>(kind); }
    int microbatchOr(int none) const { return microbatch == noMicrobatch ? none : static_cast<int>(microbatch); }
};
static_assert(sizeof(Slice) == 16);

class LaneData {
public:
    LaneData() = default;

    // Slices must come in order of begin; one that begins before its predecessor's end is cut at it. O(1) amortised.
    void append(const Span& span, SpanId id, Nanos origin);
    void reserve(std::size_t slices) { m_slices.reserve(slices); }
    void buildPyramid(); // or extends it over slices appended since

    const std::vector<Slice>& slices() const { return m_slices; }
    const Pyramid& pyramid() const { return m_pyramid; }
    SpanId spanOf(std::size_t slice) const;
    std::size_t sliceOf(SpanId span) const; // size() where the lane has no such span
    std::size_t size() const { return m_slices.size(); }
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
