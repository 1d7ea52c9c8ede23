#include "widgets/timeline/pyramid.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "widgets/timeline/lane.h"

namespace stagewright {

namespace {

constexpr int fanOutShift = 2;

// The share each byte of a bucket keeps; the last holds communication, optimizer and others together.
std::size_t shareOf(Paint paint) { return std::min<std::size_t>(static_cast<std::size_t>(paint), 3); }

std::uint8_t roundedShare(Nanos sum, int shift)
{
    if (sum <= 0) return 0;
    const double share = std::ldexp(static_cast<double>(sum), -shift) * 255;
    return static_cast<std::uint8_t>(std::clamp(std::lround(share), 1L, 255L));
}

} // namespace

double PaintBucket::busy() const { return std::min(1.0, (share[0] + share[1] + share[2] + share[3]) / 255.0); }

void Pyramid::write(std::size_t level, const Open& open)
{
    if (open.index < 0) return;
    Level& l = m_levels[level];
    const auto index = static_cast<std::size_t>(open.index - l.first);
    if (l.buckets.size() <= index) {
        PaintBucket idle;
        idle.longestGap = 255;
        l.buckets.resize(index + 1, idle);
    }
    PaintBucket& bucket = l.buckets[index];
    std::array<Nanos, 4> sums{};
    bucket.mask = 0;
    for (std::size_t p = 0; p < paintCount; ++p) {
        sums[shareOf(static_cast<Paint>(p))] += open.sums[p];
        if (open.sums[p] > 0) bucket.mask = static_cast<std::uint8_t>(bucket.mask | (1u << p));
    }
    for (std::size_t i = 0; i < 4; ++i) bucket.share[i] = roundedShare(sums[i], l.shift);
    const Nanos begin = open.index << l.shift, end = (open.index + 1) << l.shift;
    const Nanos gap = std::max({open.gap, open.firstBegin - begin, end - open.lastEnd});
    bucket.longestGap =
        static_cast<std::uint8_t>(std::min(255.0, std::ldexp(static_cast<double>(gap), -l.shift) * 255));
    bucket.count = static_cast<std::uint16_t>(std::min<std::uint32_t>(open.count, 65535));
}

void Pyramid::merge(Open& above, const Open& below, std::int64_t index)
{
    if (below.index < 0) return;
    if (above.index != index) {
        above = Open{};
        above.index = index;
        above.firstBegin = below.firstBegin;
    } else {
        above.gap = std::max(above.gap, below.firstBegin - above.lastEnd);
    }
    above.gap = std::max(above.gap, below.gap);
    above.lastEnd = below.lastEnd;
    above.count += below.count;
    for (std::size_t p = 0; p < paintCount; ++p) above.sums[p] += below.sums[p];
}

void Pyramid::complete(std::size_t level)
{
    Open& open = m_open[level];
    if (open.index < 0) return;
    write(level, open);
    if (level + 1 < m_levels.size()) {
        const std::int64_t parent = open.index >> fanOutShift;
        if (m_open[level + 1].index >= 0 && m_open[level + 1].index != parent) complete(level + 1);
        merge(m_open[level + 1], open, parent);
    }
    open.index = -1;
}

void Pyramid::add(const Slice& slice, LaneLook look)
{
    const Nanos begin = slice.begin(), end = slice.end();
    const auto paint = static_cast<std::size_t>(familyOf(look, static_cast<unsigned>(slice.kind)));
    const int shift = m_levels.front().shift;
    const std::int64_t first = begin >> shift, last = end > begin ? (end - 1) >> shift : first;
    for (std::int64_t index = first; index <= last; ++index) {
        Open& open = m_open.front();
        const Nanos low = std::max(begin, index << shift), high = std::min(end, (index + 1) << shift);
        if (open.index != index) {
            complete(0);
            open = Open{};
            open.index = index;
            open.firstBegin = low;
        } else {
            open.gap = std::max(open.gap, low - open.lastEnd);
        }
        open.sums[paint] += high - low;
        open.lastEnd = high;
        if (index == first) ++open.count;
    }
}

// Writes the unfinished buckets of every level without completing them: the tree can still grow.
void Pyramid::writeOpen()
{
    const std::vector<Open> kept = m_open;
    for (std::size_t level = 0; level < m_levels.size(); ++level) complete(level);
    m_open = kept;
}

void Pyramid::build(std::span<const Slice> slices, LaneLook look)
{
    *this = {};
    extend(slices, look);
}

void Pyramid::extend(std::span<const Slice> slices, LaneLook look)
{
    if (slices.size() <= m_slices) return;
    const Nanos begin = slices.front().begin();
    const Nanos end = std::max<Nanos>(1, slices.back().end());
    const auto count = static_cast<Nanos>(slices.size());
    // The lowest buckets hold about two slices at the lane's mean pitch, so that dense and sparse lanes cost the same
    // per slice.
    const Nanos pitch = std::max<Nanos>(1, (end - begin) / count);
    const int lowest = std::bit_width(static_cast<std::uint64_t>(2 * pitch)) - 1;
    if (m_levels.empty() || std::abs(m_levels.front().shift - lowest) > 1) {
        m_levels.assign(1, Level{lowest, begin >> lowest, {}});
        m_open.assign(1, Open{});
        m_slices = 0;
    }
    // A level that becomes the second highest has one bucket so far, still open: nothing has to be summed again.
    while (((end - 1) >> m_levels.back().shift) > 0) {
        const int shift = m_levels.back().shift + fanOutShift;
        m_levels.push_back({shift, begin >> shift, {}});
        m_open.emplace_back();
    }
    if (m_slices == 0) {
        for (Level& level : m_levels)
            level.buckets.reserve(static_cast<std::size_t>(((end - 1) >> level.shift) - level.first + 1));
    }
    for (std::size_t i = m_slices; i < slices.size(); ++i) add(slices[i], look);
    m_slices = slices.size();
    writeOpen();
}

void Pyramid::assign(int shift, std::vector<PaintBucket> buckets)
{
    *this = {};
    if (buckets.empty()) return;
    m_levels.push_back({shift, 0, std::move(buckets)});
    while (m_levels.back().buckets.size() > 1) {
        const std::vector<PaintBucket>& below = m_levels.back().buckets;
        Level above{m_levels.back().shift + fanOutShift, 0, std::vector<PaintBucket>((below.size() + 3) / 4)};
        for (std::size_t i = 0; i < above.buckets.size(); ++i) {
            std::array<int, 4> sums{};
            PaintBucket& bucket = above.buckets[i];
            for (std::size_t j = 4 * i; j < std::min(below.size(), 4 * i + 4); ++j) {
                for (std::size_t k = 0; k < 4; ++k) sums[k] += below[j].share[k];
                bucket.mask = static_cast<std::uint8_t>(bucket.mask | below[j].mask);
            }
            for (std::size_t k = 0; k < 4; ++k)
                bucket.share[k] = static_cast<std::uint8_t>(sums[k] == 0 ? 0 : std::max(1, sums[k] / 4));
        }
        m_levels.push_back(std::move(above));
    }
}

const Pyramid::Level* Pyramid::levelFor(double width) const
{
    const Level* found = nullptr;
    for (const Level& level : m_levels) {
        if (static_cast<double>(level.width()) > width) break;
        found = &level;
    }
    return found;
}

std::size_t Pyramid::memoryUse() const
{
    std::size_t bytes = 0;
    for (const Level& level : m_levels) bytes += level.buckets.capacity() * sizeof(PaintBucket);
    return bytes;
}

} // namespace stagewright
