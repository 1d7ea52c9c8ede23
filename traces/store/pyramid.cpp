#include "traces/store/pyramid.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

// Buckets of the finest level. Spans come sorted by start; overlapping ones reach into buckets ahead, which wait here.
class FinestLevel {
public:
    explicit FinestLevel(int level) : m_level(level) {}

    void add(const Span& span)
    {
        if (isDelay(span.op.kind)) return;
        std::int64_t index = span.start >> m_level;
        flushBefore(index);
        Nanos from = span.start;
        while (from < span.end) {
            const Nanos until = std::min(span.end, (index + 1) << m_level);
            at(index)[static_cast<std::size_t>(span.op.kind)] += until - from;
            from = until;
            ++index;
        }
    }

    PyramidLevel finish()
    {
        flushBefore(std::numeric_limits<std::int64_t>::max());
        return {m_level, std::move(m_done)};
    }

private:
    using Row = std::array<Nanos, opKindRoom>;

    Row& at(std::int64_t index)
    {
        if (m_open.empty()) m_first = index;
        const auto place = static_cast<std::size_t>(index - m_first);
        while (m_open.size() <= place) m_open.push_back(Row{});
        return m_open[place];
    }

    void flushBefore(std::int64_t index)
    {
        if (m_open.empty() || m_first >= index) return;
        std::size_t flushed = 0;
        for (; flushed < m_open.size() && m_first < index; ++flushed, ++m_first) {
            const Row& row = m_open[flushed];
            for (std::size_t kind = 0; kind < allKinds().size(); ++kind)
                if (row[kind] > 0) m_done.push_back({m_first, static_cast<OpKind>(kind), row[kind]});
        }
        m_open.erase(m_open.begin(), m_open.begin() + static_cast<std::ptrdiff_t>(flushed));
    }

    int m_level;
    std::int64_t m_first = 0; // index of m_open[0]
    std::vector<Row> m_open;
    std::vector<Bucket> m_done;
};

PyramidLevel parentOf(const PyramidLevel& child)
{
    PyramidLevel parent;
    parent.level = child.level + pyramidFanOut;
    std::array<Nanos, opKindRoom> sums{};
    for (std::size_t i = 0; i < child.buckets.size();) {
        const std::int64_t index = child.buckets[i].index >> pyramidFanOut;
        sums.fill(0);
        for (; i < child.buckets.size() && child.buckets[i].index >> pyramidFanOut == index; ++i)
            sums[static_cast<std::size_t>(child.buckets[i].kind)] += child.buckets[i].occupied;
        for (std::size_t kind = 0; kind < allKinds().size(); ++kind)
            if (sums[kind] > 0) parent.buckets.push_back({index, static_cast<OpKind>(kind), sums[kind]});
    }
    return parent;
}

constexpr std::size_t bucketColumns = 3;

} // namespace

std::vector<PyramidLevel> buildPyramid(std::span<const Span> spans)
{
    std::vector<PyramidLevel> levels;
    if (spans.empty()) return levels;
    Nanos end = spans.front().end;
    std::uint64_t total = 0; // of all durations; more than the length where spans overlap
    for (const Span& span : spans) {
        end = std::max(end, span.end);
        total += static_cast<std::uint64_t>(span.end - span.start);
    }
    // About spansPerBucket spans in a bucket, and a span never fills more than a few buckets on average.
    const auto length = static_cast<std::uint64_t>(std::max<Nanos>(1, end - spans.front().start));
    const std::uint64_t wanted = std::max<std::uint64_t>(1, spans.size() / spansPerBucket);
    int level = std::max(std::bit_width(length / wanted), std::bit_width(total / (4 * spans.size())));
    level = std::min(highestLevel, (level + pyramidFanOut - 1) / pyramidFanOut * pyramidFanOut);
    FinestLevel finest(level);
    for (const Span& span : spans) finest.add(span);
    levels.push_back(finest.finish());
    const auto covers = [&] {
        const auto& buckets = levels.back().buckets;
        return buckets.empty() ? 0 : buckets.back().index - buckets.front().index + 1;
    };
    while (covers() > 2 && levels.back().level + pyramidFanOut <= highestLevel)
        levels.push_back(parentOf(levels.back()));
    return levels;
}

std::span<const std::byte> encodeBuckets(BlockEncoder& encoder, std::span<const Bucket> buckets)
{
    encoder.clear();
    std::array<std::int64_t, blockRows> column; // filled only as far as it is read
    const auto add = [&](ColumnForm form, auto get) {
        for (std::size_t i = 0; i < buckets.size(); ++i) column[i] = get(buckets[i]);
        encoder.add(std::span<const std::int64_t>(column.data(), buckets.size()), form);
    };
    add(ColumnForm::Delta, [](const Bucket& b) { return b.index; });
    add(ColumnForm::Plain, [](const Bucket& b) { return static_cast<std::int64_t>(b.kind); });
    add(ColumnForm::Plain, [](const Bucket& b) { return b.occupied; });
    return encoder.finish();
}

bool decodeBuckets(std::span<const std::byte> bytes, std::size_t rows, std::vector<Bucket>& out)
{
    const auto block = BlockDecoder::open(bytes, rows, bucketColumns);
    if (!block) return false;
    const auto index = block->column(0);
    const auto kind = block->column(1);
    const auto occupied = block->column(2);
    out.resize(rows);
    for (std::size_t i = 0; i < rows; ++i) {
        if (kind[i] < 0 || kind[i] >= static_cast<std::int64_t>(allKinds().size()) || occupied[i] < 0) return false;
        out[i] = {index[i], static_cast<OpKind>(kind[i]), occupied[i]};
    }
    return true;
}

} // namespace stagewright
