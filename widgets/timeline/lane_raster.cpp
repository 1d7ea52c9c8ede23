#include "widgets/timeline/lane_raster.h"

#include <algorithm>
#include <cmath>

namespace stagewright {

void LaneColumns::clear()
{
    wide.clear();
    spans.clear();
    gaps.clear();
    sums.clear();
    aggregated = false;
}

namespace {

class Sums {
public:
    Sums(const Axis& device, std::vector<PaintSums>& columns)
        : m_begin(device.range.begin), m_end(device.range.end), m_scale(device.width / static_cast<double>(device.range.duration())),
          m_perColumn(1 / m_scale), m_columns(columns)
    {
    }

    void start()
    {
        if (m_columns.empty()) m_columns.assign(count(), PaintSums{});
    }
    std::size_t count() const { return static_cast<std::size_t>(std::ceil(static_cast<double>(m_end - m_begin) * m_scale - 1e-6)); }
    // Begin of a column in ns: the one boundary that both neighbours share.
    Nanos edge(std::size_t column) const
    {
        return m_begin + static_cast<Nanos>(std::llround(static_cast<double>(column) * m_perColumn));
    }
    // Times must not decrease between calls.
    void add(Nanos begin, Nanos end, std::size_t paint)
    {
        begin = std::max(begin, m_begin);
        end = std::min(end, m_end);
        if (end <= begin) return;
        if (begin >= m_nextEdge || begin < m_lastEdge) seek(begin);
        while (end > m_nextEdge && m_at + 1 < m_columns.size()) {
            m_columns[m_at][paint] += m_nextEdge - begin;
            begin = m_nextEdge;
            m_lastEdge = m_nextEdge;
            m_nextEdge = edge(++m_at + 1);
        }
        m_columns[m_at][paint] += end - begin;
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
    std::vector<PaintSums>& m_columns;
    std::size_t m_at = 0;
    Nanos m_lastEdge = 1;
    Nanos m_nextEdge = 0;
};

constexpr std::array<std::size_t, 4> paintOfShare{0, 1, 2, 3};

// Columns from buckets: each bucket's shares spread evenly over its own width.
void addBuckets(const Pyramid::Level& level, const Axis& device, Sums& sums)
{
    const int shift = level.shift;
    const auto last = static_cast<std::int64_t>(level.buckets.size());
    const std::int64_t from = std::max<std::int64_t>(0, device.range.begin >> shift);
    const std::int64_t to = std::min(last, (device.range.end >> shift) + 1);
    const double width = static_cast<double>(level.width()) / 255;
    for (std::int64_t index = from; index < to; ++index) {
        const Bucket& bucket = level.buckets[static_cast<std::size_t>(index)];
        if (bucket.mask == 0) continue;
        Nanos at = index << shift;
        for (std::size_t k = 0; k < 4; ++k) {
            if (bucket.share[k] == 0) continue;
            std::size_t paint = paintOfShare[k];
            if (k == 3) {
                for (paint = 3; paint + 1 < paintCount && (bucket.mask >> paint & 1u) == 0; ++paint) {}
            }
            const Nanos size = static_cast<Nanos>(bucket.share[k] * width);
            sums.add(at, at + size, paint);
            at += size;
        }
    }
}

} // namespace

void rasterLane(const LaneData& lane, const Axis& device, const RasterOptions& options, LaneColumns& out)
{
    out.clear();
    if (device.degenerate()) return;
    const double scale = device.width / static_cast<double>(device.range.duration());
    out.nanosPerColumn = 1 / scale;
    const auto x = [&](Nanos t) { return static_cast<double>(t - device.range.begin) * scale; };
    const int columns = static_cast<int>(std::ceil(device.width - 1e-6));
    const auto& slices = lane.slices();
    const std::size_t first = lane.firstEndingAfter(device.range.begin);
    const std::size_t last = std::max(first, lane.firstBeginningAt(device.range.end));
    const auto visible = static_cast<double>(last - first);
    Sums sums(device, out.sums);

    if (options.detail == Detail::Draft && visible > 4 * device.width) {
        const double width = out.nanosPerColumn * (options.fine ? 0.25 : 1.0);
        const Pyramid::Level* level = lane.pyramid().levelFor(width);
        if (level != nullptr && static_cast<double>(level->width()) * visible > 2 * static_cast<double>(device.range.duration())) {
            sums.start();
            addBuckets(*level, device, sums);
            out.aggregated = true;
            return;
        }
    }

    const auto noteGap = [&](Nanos from, Nanos to) {
        if (static_cast<double>(to - from) * scale >= options.gapMin) out.gaps.push_back({x(from), x(to), to - from});
    };
    const double narrow = 2; // device px: what is narrower crowds unless it stands alone
    Nanos before = first > 0 ? std::max(slices[first - 1].end(), options.lead) : options.lead;
    for (std::size_t i = first; i < last; ++i) {
        const Slice& slice = slices[i];
        const Nanos begin = slice.begin(), end = slice.end();
        if (begin > before) noteGap(before, begin);
        const double width = static_cast<double>(end - begin) * scale;
        if (width >= options.wideMin) {
            out.wide.push_back(i);
        } else {
            const auto paint = paintOf(slice.opKind());
            const double x0 = x(begin), x1 = x(end);
            int a = static_cast<int>(std::lround(x0)), b = static_cast<int>(std::lround(x1));
            if (width >= narrow) {
                out.spans.push_back({a, b, paint, false});
            } else {
                const double spaceBefore = i > 0 ? x0 - x(slices[i - 1].end()) : 1e9;
                const double spaceAfter = i + 1 < slices.size() ? x(slices[i + 1].begin()) - x1 : 1e9;
                if (spaceBefore >= 1 && spaceAfter >= 1) {
                    const bool widened = width < 1;
                    if (widened) a = static_cast<int>(std::floor((x0 + x1) / 2));
                    b = std::max(b, a + 1);
                    if (widened) b = a + 1;
                    out.spans.push_back({a, b, paint, widened});
                } else {
                    sums.start();
                    sums.add(begin, end, static_cast<std::size_t>(paint));
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

QRgb mixed(QRgb a, QRgb b, double share) // share of b
{
    const auto channel = [share](int p, int q) { return static_cast<int>(std::lround(p + (q - p) * share)); };
    return qRgb(channel(qRed(a), qRed(b)), channel(qGreen(a), qGreen(b)), channel(qBlue(a), qBlue(b)));
}

bool isRare(std::size_t paint)
{
    return paint >= static_cast<std::size_t>(Paint::Communication);
}

} // namespace

void paintColumns(QImage& image, int x0, int y0, int height, int stackMin, const LaneColumns& columns,
                  const std::array<QRgb, paintCount>& colours, QRgb idle)
{
    if (height <= 0) return;
    const int top = std::max(0, y0), bottom = std::min(image.height(), y0 + height);
    const int right = image.width() - x0;
    const auto line = [&image](int y) { return reinterpret_cast<QRgb*>(image.scanLine(y)); };
    const int count = std::min(static_cast<int>(columns.sums.size()), right);

    if (height < stackMin) {
        for (int c = 0; c < count; ++c) {
            const PaintSums& sums = columns.sums[static_cast<std::size_t>(c)];
            Nanos total = 0;
            std::size_t most = 0;
            for (std::size_t k = 0; k < paintCount; ++k) {
                total += sums[k];
                if (sums[k] > sums[most]) most = k;
            }
            if (total == 0) continue;
            const double busy = std::min(1.0, static_cast<double>(total) / columns.nanosPerColumn);
            const QRgb colour = mixed(idle, colours[most], std::max(busy, 0.12));
            for (int y = top; y < bottom; ++y) line(y)[x0 + c] = colour;
        }
    } else if (count > 0) {
        // Heights first (bottom up: F, B, W, communication, optimizer, others), then scanlines.
        std::vector<std::array<std::int16_t, paintCount>> ends(static_cast<std::size_t>(count));
        for (int c = 0; c < count; ++c) {
            const PaintSums& sums = columns.sums[static_cast<std::size_t>(c)];
            Nanos below = 0;
            int used = 0;
            for (std::size_t k = 0; k < paintCount; ++k) {
                below += sums[k];
                int end = static_cast<int>(std::lround(static_cast<double>(below) / columns.nanosPerColumn * height));
                if (below > 0 && end == 0) end = 1; // never nothing
                end = std::clamp(end, used, height);
                if (sums[k] > 0 && end == used && isRare(k) && y0 >= 3) {
                    for (int y = y0 - 3; y < y0 - 1; ++y) {
                        if (y < image.height()) line(y)[x0 + c] = colours[k];
                    }
                }
                used = end;
                ends[static_cast<std::size_t>(c)][k] = static_cast<std::int16_t>(end);
            }
        }
        for (int y = top; y < bottom; ++y) {
            const int fromBottom = y0 + height - 1 - y;
            QRgb* pixels = line(y) + x0;
            for (int c = 0; c < count; ++c) {
                const auto& end = ends[static_cast<std::size_t>(c)];
                if (fromBottom >= end[paintCount - 1]) continue;
                std::size_t k = 0;
                while (fromBottom >= end[k]) ++k;
                pixels[c] = colours[k];
            }
        }
    }

    for (const PixelSpan& span : columns.spans) {
        const int from = std::min(span.x0, right), to = std::min(span.x1, right);
        const int spanTop = span.low ? std::max(top, y0 + height / 3) : top;
        for (int y = std::min(spanTop, bottom - 1); y >= 0 && y < bottom; ++y) {
            std::fill(line(y) + x0 + from, line(y) + x0 + to, colours[static_cast<std::size_t>(span.paint)]);
        }
    }
}

} // namespace stagewright
