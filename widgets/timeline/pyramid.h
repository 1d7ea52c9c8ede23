// Pyramid over a lane's slices: for every level, buckets of a power-of-two width with the amount of each kind in them.
// A frame reads a few buckets per pixel instead of every slice.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "schedules/base/units.h"
#include "widgets/timeline/inks.h"

namespace stagewright {

struct Slice;

// Time by paint, in ns; exact.
using PaintSums = std::array<Nanos, paintCount>;

// 8 bytes. Shares are of the bucket's width in 255ths, rounded, never up to 0 for a kind that occurs (see mask).
struct PaintBucket {
    std::array<std::uint8_t, 4> share{}; // Forward, Backward, Weight, and all others together
    std::uint8_t longestGap = 0;         // in 255ths of the width, rounded down; within the bucket
    std::uint8_t mask = 0;               // bit per Paint that occurs
    std::uint16_t count = 0;             // slices that start here, saturating

    double busy() const; // 0 … 1
};
static_assert(sizeof(PaintBucket) == 8);

// Widths are 2^shift ns: the lowest about two slices, every level four times the one below; one bucket at the top.
// Every level is computed from exact sums, never from the rounded bytes below it. About 8 bytes per slice.
class Pyramid {
public:
    struct Level {
        int shift = 0;
        // bucket i is [first + i, first + i + 1) << shift: a lane of a part of a run starts late
        std::int64_t first = 0;
        std::vector<PaintBucket> buckets;
        Nanos width() const { return Nanos(1) << shift; }
    };

    // Slices sorted, without overlap. extend() is build() for slices appended at the end since.
    void build(std::span<const Slice> slices, LaneLook look = LaneLook::Ops);
    void extend(std::span<const Slice> slices, LaneLook look = LaneLook::Ops);
    // From given buckets of width 2^shift from time 0; the levels above are means of rounded shares.
    void assign(int shift, std::vector<PaintBucket> buckets);

    bool empty() const { return m_levels.empty(); }
    const std::vector<Level>& levels() const { return m_levels; }
    // The coarsest level with buckets of at most `width`; nullptr if even the lowest is wider.
    const Level* levelFor(double width) const;
    std::size_t memoryUse() const;

private:
    // An unfinished bucket, exact. When complete, its sums go into the bucket above.
    struct Open {
        PaintSums sums{};
        Nanos gap = 0; // longest so far, between firstBegin and lastEnd
        Nanos firstBegin = 0;
        Nanos lastEnd = 0;
        std::uint32_t count = 0;
        std::int64_t index = -1; // −1: nothing yet
    };
    static void merge(Open& above, const Open& below, std::int64_t index);
    void write(std::size_t level, const Open& open);
    void complete(std::size_t level);
    void add(const Slice& slice, LaneLook look);
    void writeOpen();

    std::vector<Level> m_levels;
    std::vector<Open> m_open;
    std::size_t m_slices = 0;
};

} // namespace stagewright
