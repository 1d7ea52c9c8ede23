// LaneData: the slices of one drawn row, 16 bytes each, sorted and without overlap, with a pyramid beside them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "schedules/model/kinds.h"
#include "schedules/timeline/timeline.h"
#include "widgets/timeline/inks.h"
#include "widgets/timeline/pyramid.h"

namespace stagewright {

// Times are axis time (≥ 0). 54 bits of ns are 208 days; an op longer than 4.8 hours is stored with that length.
// An overlapped pair is two slices that halve its interval, so that lanes never overlap; it is drawn as one block over
// the whole interval, the first op above the second.
struct Slice {
    std::uint64_t start : 54 = 0;
    std::uint64_t kind : 5 = 0; // OpKind, or what its lane's look says
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

// Copies share slices and pyramid; the first append to a shared lane copies it.
// A lane may hold more than the timeline beside it: then only slices of a window have span ids; the others have noSpan.
class LaneData {
public:
    LaneData();
    void setLook(LaneLook look) { own().look = look; } // of an empty lane
    LaneLook look() const { return m_body->look; }
    std::size_t inkOf(const Slice& slice) const
    {
        return stagewright::inkOf(look(), static_cast<unsigned>(slice.kind));
    }

    // Slices must come in order of start; one that starts before its predecessor's end is cut there. O(1) amortised.
    // ink: instead of the op's kind, in lanes of another look.
    void append(const Span& span, SpanId id, Nanos origin, int tint = 0, int ink = -1);
    // Without an id and in any order: buildPyramid sorts late ones. Not to be mixed with the other append.
    void appendLoose(const Span& span, Nanos origin, int tint = 0, int ink = -1);
    void reserve(std::size_t slices);
    void buildPyramid(); // or extends it over slices appended since
    // For a lane without slices: only a pyramid, as stored with a run. Bucket i of `buckets` is [i, i + 1) << shift.
    void setOverview(int shift, std::vector<PaintBucket> buckets);
    bool isOverview() const { return m_body->slices.empty() && !m_body->pyramid.empty(); }

    const std::vector<Slice>& slices() const { return m_body->slices; }
    const Pyramid& pyramid() const { return m_body->pyramid; }
    // The slices from `first` on are these spans (noSpan: none); any other slice has no id.
    void setIds(std::size_t first, std::vector<SpanId> ids);
    SpanId spanOf(std::size_t slice) const;             // noSpan if the slice has no id
    std::size_t sliceOf(SpanId span) const;             // size() if the lane has no such span
    std::size_t idsBegin() const { return m_idsBegin; } // slices with ids are in [idsBegin, idsEnd)
    std::size_t idsEnd() const { return m_idsBegin + (m_ids.empty() ? m_idCount : m_ids.size()); }
    std::size_t size() const { return m_body->slices.size(); }
    // The interval that the slice is drawn over: its own, or that of its pair.
    TimeSpan drawn(std::size_t slice) const;
    Nanos begin() const { return size() == 0 ? 0 : slices().front().begin(); }
    Nanos end() const { return size() == 0 ? 0 : slices().back().end(); }

    // First slice that ends after t. O(log slices).
    std::size_t firstEndingAfter(Nanos t) const;
    // First slice that starts at t or later. O(log slices).
    std::size_t firstBeginningAt(Nanos t) const;
    std::size_t memoryUse() const; // bytes of slices, ids and pyramid

private:
    struct Body {
        std::vector<Slice> slices;
        Pyramid pyramid;
        LaneLook look = LaneLook::Ops;
        bool late = false; // a slice without id is earlier than its predecessor
    };
    Body& own();
    void push(const Span& span, Nanos begin, Nanos end, bool lower, int tint, int ink);
    void arrange();

    std::shared_ptr<Body> m_body;
    std::size_t m_idsBegin = 0;
    std::size_t m_idCount = 0;   // while the ids are consecutive
    SpanId m_firstSpan = noSpan; // as above
    std::vector<SpanId> m_ids;   // empty while the ids are consecutive
    bool m_holes = false;        // some of m_ids are noSpan
};

} // namespace stagewright
