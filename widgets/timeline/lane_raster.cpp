#include "widgets/timeline/lane_raster.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace stagewright {

void LaneColumns::clear()
{
    wide.clear();
    spans.clear();
    gaps.clear();
    sums.clear();
    shares.clear();
    masks.clear();
    read = 0;
    aggregated = false;
}

namespace {

constexpr float half = 0.5F; // rounds what is not negative

class Sums {
public:
    Sums(const Axis& device, std::vector<InkSums>& columns)
        : m_begin(device.range.begin), m_end(device.range.end),
          m_scale(device.width / static_cast<double>(device.range.duration())),
          m_perColumn(static_cast<double>(device.range.duration()) / device.width), m_columns(columns)
    {
    }

    void start()
    {
        if (m_columns.empty()) m_columns.assign(count(), InkSums{});
    }
    std::size_t count() const
    {
        return static_cast<std::size_t>(std::ceil(static_cast<double>(m_end - m_begin) * m_scale - 1e-6));
    }
    // Start of a column in ns: the one boundary that both neighbours share.
    Nanos edge(std::size_t column) const
    {
        return m_begin + static_cast<Nanos>(std::llround(static_cast<double>(column) * m_perColumn));
    }
    // Times must not decrease between calls.
    void add(Nanos begin, Nanos end, std::size_t ink)
    {
        begin = std::max(begin, m_begin);
        end = std::min(end, m_end);
        if (end <= begin) return;
        if (begin >= m_nextEdge || begin < m_lastEdge) seek(begin);
        while (end > m_nextEdge && m_at + 1 < m_columns.size()) {
            m_columns[m_at][ink] += m_nextEdge - begin;
            begin = m_nextEdge;
            m_lastEdge = m_nextEdge;
            m_nextEdge = edge(++m_at + 1);
        }
        m_columns[m_at][ink] += end - begin;
    }
    double perColumn() const { return m_perColumn; }

private:
    void seek(Nanos t)
    {
        auto column = static_cast<std::size_t>(std::max(0.0, static_cast<double>(t - m_begin) * m_scale));
        column = std::min(column, m_columns.size() - 1);
        while (column > 0 && edge(column) > t) --column;
        while (column + 1 < m_columns.size() && edge(column + 1) <= t) ++column;
        m_at = column;
        m_lastEdge = edge(column);
        m_nextEdge = edge(column + 1);
    }

    Nanos m_begin, m_end;
    double m_scale;
    double m_perColumn;
    std::vector<InkSums>& m_columns;
    std::size_t m_at = 0;
    Nanos m_lastEdge = 1;
    Nanos m_nextEdge = 0;
};

using Four = float __attribute__((vector_size(16)));
using FourBytes = std::uint8_t __attribute__((vector_size(4)));

Four sharesOf(const PaintBucket& bucket)
{
    FourBytes bytes;
    std::memcpy(&bytes, bucket.share.data(), 4);
    return __builtin_convertvector(bytes, Four);
}

// The buckets of a column and the parts of the first and last: the same for every lane of a frame.
struct ColumnMap {
    struct Part {
        std::int64_t first = 0;
        std::int64_t last = 0; // inclusive
        float ofFirst = 0;
        float ofLast = 0; // 0 where first == last
    };
    Axis axis;
    int shift = -1;
    std::vector<Part> parts;

    bool isOf(const Axis& device, int levelShift, std::size_t count) const
    {
        return shift == levelShift && parts.size() == count && axis.range == device.range && axis.width == device.width;
    }
    void make(const Axis& device, int levelShift, std::size_t count)
    {
        axis = device;
        shift = levelShift;
        parts.assign(count, {});
        const double perBucket = std::ldexp(1.0, -levelShift);
        const double perColumn = static_cast<double>(device.range.duration()) / device.width * perBucket;
        const double origin = static_cast<double>(device.range.begin) * perBucket;
        double next = std::max(0.0, origin);
        for (std::size_t c = 0; c < count; ++c) {
            const double from = next;
            const double to = next = std::max(0.0, origin + static_cast<double>(c + 1) * perColumn);
            Part& part = parts[c];
            part.first = static_cast<std::int64_t>(from);
            part.last = static_cast<std::int64_t>(to);
            const double rest = to - static_cast<double>(part.last);
            if (part.first == part.last) {
                part.ofFirst = static_cast<float>(to - from);
            } else {
                part.ofFirst = static_cast<float>(1 - (from - static_cast<double>(part.first)));
                part.ofLast = static_cast<float>(rest);
                if (rest <= 0) { // ends with the bucket before
                    --part.last;
                    part.ofLast = part.last == part.first ? 0 : 1;
                }
            }
        }
    }
};

const ColumnMap& columnMap(const Axis& device, int shift, std::size_t count)
{
    thread_local std::array<ColumnMap, 4> maps; // lanes of a few densities alternate
    thread_local std::size_t oldest = 0;
    for (const ColumnMap& map : maps)
        if (map.isOf(device, shift, count)) return map;
    ColumnMap& map = maps[oldest];
    oldest = (oldest + 1) % maps.size();
    map.make(device, shift, count);
    return map;
}

// Columns from buckets: whole ones, and the parts of those cut by a column edge.
void addBuckets(const Pyramid::Level& level, const Axis& device, std::size_t count, LaneColumns& out)
{
    out.shares.resize(count);
    out.masks.assign(count, 0);
    const ColumnMap& map = columnMap(device, level.shift, count);
    const auto begin = level.first, end = level.first + static_cast<std::int64_t>(level.buckets.size());
    const float scale = static_cast<float>(static_cast<double>(level.width()) / (255 * out.nanosPerColumn));
    const auto at = [&](std::int64_t index) -> const PaintBucket& {
        return level.buckets[static_cast<std::size_t>(index - begin)];
    };
    for (std::size_t c = 0; c < count; ++c) {
        const ColumnMap::Part& part = map.parts[c];
        if (part.first >= end || part.last < begin) {
            out.shares[c] = {};
            continue;
        }
        Four sum{};
        std::uint8_t mask = 0;
        if (part.first >= begin) {
            sum = sharesOf(at(part.first)) * part.ofFirst;
            mask = at(part.first).mask;
        }
        const std::int64_t last = std::min(part.last, end - 1);
        out.read += static_cast<std::size_t>(last - std::max(part.first, begin) + 1);
        for (std::int64_t i = std::max(part.first + 1, begin); i <= last; ++i) {
            const bool whole = i != part.last;
            sum += whole ? sharesOf(at(i)) : sharesOf(at(i)) * part.ofLast;
            mask = static_cast<std::uint8_t>(mask | at(i).mask);
        }
        sum *= scale;
        std::memcpy(out.shares[c].data(), &sum, sizeof sum);
        out.masks[c] = mask;
    }
}

} // namespace

void rasterLane(const LaneData& lane, const Axis& device, const RasterOptions& options, LaneColumns& out)
{
    out.clear();
    if (device.degenerate()) return;
    const double perColumn = static_cast<double>(device.range.duration()) / device.width;
    out.nanosPerColumn = perColumn;
    const auto x = [&](Nanos t) { return static_cast<double>(t - device.range.begin) / perColumn; };
    const int columns = static_cast<int>(std::ceil(device.width - 1e-6));
    if (lane.isOverview()) {
        const Pyramid::Level* level = lane.pyramid().levelFor(out.nanosPerColumn);
        addBuckets(level != nullptr ? *level : lane.pyramid().levels().front(), device,
                   static_cast<std::size_t>(columns), out);
        out.aggregated = true;
        return;
    }
    const auto& slices = lane.slices();
    const std::size_t first = lane.firstEndingAfter(device.range.begin);
    const std::size_t last = std::max(first, lane.firstBeginningAt(device.range.end));
    const auto visible = static_cast<double>(last - first);
    Sums sums(device, out.sums);

    // A lane's mean density decides whether it is crowded, so that this does not change while the view moves; where the
    // view holds far more than that, it is crowded anyway.
    const double pitch =
        slices.empty()
            ? 0
            : std::max(1.0, static_cast<double>(lane.end() - lane.begin()) / static_cast<double>(slices.size()));
    if (options.detail == Detail::Draft && last > first && (perColumn > 4 * pitch || visible > 64 * device.width)) {
        const Pyramid::Level* level = lane.pyramid().levelFor(perColumn * (options.fine ? 0.25 : 1.0));
        if (level != nullptr && static_cast<double>(level->width()) > pitch) {
            addBuckets(*level, device, static_cast<std::size_t>(columns), out);
            out.aggregated = true;
            return;
        }
    }

    const auto noteGap = [&](Nanos from, Nanos to) {
        if (static_cast<double>(to - from) >= options.gapMin * perColumn)
            out.gaps.push_back({x(from), x(to), to - from});
    };
    out.read = last - first;
    const double narrow = 2; // device px: narrower slices are crowded unless isolated
    // A span of whole columns leaves the rest of its first and last to crowded neighbours: with its own share there they
    // are not idle.
    const auto crowded = [&](std::size_t i) {
        return static_cast<double>(slices[i].end() - slices[i].begin()) < narrow * perColumn;
    };
    const auto addEnds = [&](std::size_t i, std::size_t ink) {
        const Nanos begin = slices[i].begin(), end = slices[i].end();
        const auto share = [&](Nanos from, Nanos to) {
            if (to <= from) return;
            sums.start();
            sums.add(from, to, ink);
        };
        const auto rounded = [&](Nanos t) {
            return device.range.begin + static_cast<Nanos>(std::llround(std::round(x(t)) * perColumn));
        };
        if (i > 0 && slices[i - 1].end() >= begin && crowded(i - 1)) share(begin, std::min(end, rounded(begin)));
        if (i + 1 < slices.size() && slices[i + 1].begin() <= end && crowded(i + 1))
            share(std::max(begin, rounded(end)), end);
    };
    Nanos before = first > 0 ? std::max(slices[first - 1].end(), options.lead) : options.lead;
    for (std::size_t i = first; i < last; ++i) {
        const Slice& slice = slices[i];
        const Nanos begin = slice.begin(), end = slice.end();
        if (begin > before) noteGap(before, begin);
        const auto length = static_cast<double>(end - begin);
        if (options.sumsOnly) {
            sums.start();
            sums.add(begin, end, lane.inkOf(slice));
        } else if (length >= options.wideMin * perColumn) {
            out.wide.push_back(i);
            addEnds(i, lane.inkOf(slice));
        } else {
            const std::size_t ink = lane.inkOf(slice);
            if (length >= narrow * perColumn) {
                out.spans.push_back(
                    {static_cast<int>(std::lround(x(begin))), static_cast<int>(std::lround(x(end))), ink, false});
                addEnds(i, ink);
            } else {
                const double spaceBefore = i > 0 ? static_cast<double>(begin - slices[i - 1].end()) : 1e18;
                const double spaceAfter =
                    i + 1 < slices.size() ? static_cast<double>(slices[i + 1].begin() - end) : 1e18;
                if (spaceBefore >= perColumn && spaceAfter >= perColumn) {
                    const bool widened = length < perColumn;
                    const double middle =
                        static_cast<double>((begin - device.range.begin) + (end - device.range.begin)) /
                        (2 * perColumn);
                    const int a =
                        static_cast<int>(widened ? std::floor(middle) : static_cast<double>(std::lround(x(begin))));
                    const int b = widened ? a + 1 : std::max(static_cast<int>(std::lround(x(end))), a + 1);
                    out.spans.push_back({a, b, ink, widened});
                } else {
                    sums.start();
                    sums.add(begin, end, ink);
                    out.aggregated = true;
                }
            }
        }
        before = std::max(before, end);
    }
    const Nanos next = last < slices.size() ? slices[last].begin() : options.tail;
    if (next > before) noteGap(before, next);
    for (PixelSpan& span : out.spans) {
        span.x0 = std::clamp(span.x0, 0, columns);
        span.x1 = std::clamp(span.x1, 0, columns);
    }
}

namespace {

// share: of b, in 256ths
QRgb mixed(QRgb a, QRgb b, int share)
{
    const auto channel = [share](int p, int q) { return p + (((q - p) * share) >> 8); };
    return qRgb(channel(qRed(a), qRed(b)), channel(qGreen(a), qGreen(b)), channel(qBlue(a), qBlue(b)));
}

bool isRare(std::size_t paint) { return paint >= static_cast<std::size_t>(Paint::Communication); }

std::size_t otherPaint(std::uint8_t mask) // the paint of a draft's last share
{
    for (std::size_t paint = 3; paint + 1 < paintCount; ++paint) {
        if ((mask >> paint & 1u) != 0) return paint;
    }
    return paintCount - 1;
}

} // namespace

std::array<double, inkCount> columnShares(const LaneColumns& columns, std::size_t c)
{
    std::array<double, inkCount> shares{};
    if (!columns.shares.empty()) {
        for (std::size_t k = 0; k < 3; ++k) shares[k] = static_cast<double>(columns.shares[c][k]);
        shares[otherPaint(columns.masks[c])] += static_cast<double>(columns.shares[c][3]);
    } else {
        const double scale = 1 / columns.nanosPerColumn;
        for (std::size_t k = 0; k < inkCount; ++k) shares[k] = static_cast<double>(columns.sums[c][k]) * scale;
    }
    return shares;
}

namespace {

struct Target {
    uchar* bits;
    qsizetype stride;
    QRect area;
    int top, bottom; // rows of the lane inside the area, [top, bottom)
    QRgb* line(int y) const { return reinterpret_cast<QRgb*>(bits + y * stride); }
};

// From idle to each colour in 256 steps; the same for all rows of a theme.
const std::array<std::array<QRgb, 257>, paintCount>& ramps(const std::array<QRgb, paintCount>& colours, QRgb idle)
{
    thread_local std::array<std::array<QRgb, 257>, paintCount> table;
    thread_local std::array<QRgb, paintCount> of{};
    thread_local QRgb from = 0;
    thread_local bool made = false;
    if (!made || of != colours || from != idle) {
        for (std::size_t k = 0; k < paintCount; ++k)
            for (int share = 0; share <= 256; ++share)
                table[k][static_cast<std::size_t>(share)] = mixed(idle, colours[k], share);
        of = colours;
        from = idle;
        made = true;
    }
    return table;
}

void paintRamp(const Target& target, std::size_t count, const LaneColumns& columns, const Inks& inks, QRgb idle)
{
    thread_local std::vector<QRgb> row;
    row.assign(count, 0);
    const auto& table = ramps(inks.families, idle);
    // never as if idle
    const auto level = [](float total) { return std::clamp(static_cast<int>(total * 256 + half), 30, 256); };
    for (std::size_t c = 0; c < count; ++c) {
        std::size_t most = 0;
        if (!columns.shares.empty()) {
            const auto& shares = columns.shares[c];
            const float total = shares[0] + shares[1] + shares[2] + shares[3];
            most = shares[1] > shares[0] ? 1 : 0;
            most = shares[2] > shares[most] ? 2 : most;
            if (shares[3] > shares[most]) most = otherPaint(columns.masks[c]);
            if (total > 0) row[c] = table[most][static_cast<std::size_t>(level(total))];
            continue;
        }
        const InkSums& sums = columns.sums[c];
        Nanos all = 0;
        for (std::size_t k = 0; k < inks.count; ++k) {
            all += sums[k];
            most = sums[k] > sums[most] ? k : most;
        }
        const auto total = static_cast<float>(static_cast<double>(all) / columns.nanosPerColumn);
        if (total > 0) row[c] = mixed(idle, inks.exact[most], level(total));
    }
    for (int y = target.top; y < target.bottom; ++y) {
        QRgb* pixels = target.line(y) + target.area.left();
        for (std::size_t c = 0; c < count; ++c) pixels[c] = row[c] != 0 ? row[c] : pixels[c];
    }
}

// Heights first (bottom up, in the order of the inks), then scanlines from the bottom: a column changes its colour
// where an ink ends.
void paintStacks(const Target& target, std::size_t count, int y0, int height, const LaneColumns& columns,
                 const Inks& inks)
{
    struct Stack {
        std::array<std::int16_t, inkCount> ends{};
        std::uint8_t at = 0;
    };
    const bool draft = !columns.shares.empty();
    const std::size_t kinds = draft ? paintCount : inks.count;
    const QRgb* colours = draft ? inks.families.data() : inks.exact.data();
    std::vector<Stack> stacks(count);
    std::vector<QRgb> row(count, 0);
    std::vector<std::int16_t> until(count, 0);
    for (std::size_t c = 0; c < count; ++c) {
        const auto shares = columnShares(columns, c);
        double below = 0;
        int used = 0;
        for (std::size_t k = 0; k < kinds; ++k) {
            if (shares[k] > 0) {
                below += shares[k];
                // never nothing
                const int end = std::clamp(std::max(1, static_cast<int>(below * height + half)), used, height);
                if (end == used && inks.rareTicks && isRare(k)) {
                    for (int y = std::max(target.area.top(), y0 - 3); y < y0 - 1 && y <= target.area.bottom(); ++y) {
                        target.line(y)[target.area.left() + static_cast<int>(c)] = colours[k];
                    }
                }
                used = end;
            }
            stacks[c].ends[k] = static_cast<std::int16_t>(used);
        }
    }
    for (int y = y0 + height - 1; y >= target.top; --y) {
        const int level = y0 + height - 1 - y;
        for (std::size_t c = 0; c < count; ++c) {
            if (level < until[c]) continue;
            Stack& stack = stacks[c];
            while (stack.at < kinds && stack.ends[stack.at] <= level) ++stack.at;
            const bool isIdle = stack.at == kinds;
            row[c] = isIdle ? 0 : colours[stack.at];
            until[c] = isIdle ? std::int16_t(32767) : stack.ends[stack.at];
        }
        if (y >= target.bottom) continue;
        QRgb* pixels = target.line(y) + target.area.left();
        for (std::size_t c = 0; c < count; ++c) pixels[c] = row[c] != 0 ? row[c] : pixels[c];
    }
}

} // namespace

void paintColumns(QImage& image, const QRect& area, int y0, int height, int stackMin, const LaneColumns& columns,
                  const Inks& inks, QRgb idle)
{
    const QRect cut = area.intersected(image.rect());
    if (height <= 0 || cut.isEmpty()) return;
    const Target target{image.bits(), image.bytesPerLine(), cut, std::max(cut.top(), y0),
                        std::min(cut.bottom() + 1, y0 + height)};
    const std::size_t count =
        std::min(std::max(columns.sums.size(), columns.shares.size()), static_cast<std::size_t>(cut.width()));
    if (count > 0 && height < stackMin) {
        paintRamp(target, count, columns, inks, idle);
    } else if (count > 0) {
        paintStacks(target, count, y0, height, columns, inks);
    }
    for (const PixelSpan& span : columns.spans) {
        const int from = std::min(span.x0, cut.width()), to = std::min(span.x1, cut.width());
        const int top = span.low ? std::max(target.top, y0 + height / 3) : target.top;
        for (int y = top; y < target.bottom; ++y) {
            std::fill(target.line(y) + cut.left() + from, target.line(y) + cut.left() + to, inks.exact[span.ink]);
        }
    }
}

} // namespace stagewright
