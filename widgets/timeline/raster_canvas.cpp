#include "widgets/timeline/raster_canvas.h"

#include <algorithm>
#include <cmath>

#include <QPainter>

#include "widgets/timeline/slice_shapes.h"

namespace stagewright {

namespace {

QRgb over(QRgb source, QRgb below) // premultiplied source over an opaque pixel
{
    const auto keep = static_cast<std::uint32_t>(255 - qAlpha(source));
    const auto channel = [keep](int s, int b) {
        return s + static_cast<int>((static_cast<std::uint32_t>(b) * keep + 127) / 255);
    };
    return qRgb(channel(qRed(source), qRed(below)), channel(qGreen(source), qGreen(below)),
                channel(qBlue(source), qBlue(below)));
}

} // namespace

RasterCanvas::RasterCanvas(QImage& image, const QRect& clip, const Theme& theme, double ratio)
    : m_image(image), m_bits(image.bits()), m_stride(image.bytesPerLine()), m_clip(clip.intersected(image.rect())),
      m_period(std::max(1, static_cast<int>(std::lround(hatchPitch * ratio)))),
      m_corner(static_cast<int>(std::ceil(3 * ratio))), m_theme(theme), m_ratio(ratio)
{
    // The 45° hatch depends only on x + y, so one row serves all.
    const QImage hatchTile = hatchPattern(theme, ratio);
    m_hatch.resize(static_cast<std::size_t>(std::max(0, m_clip.width()) + m_period));
    const auto* first = reinterpret_cast<const QRgb*>(hatchTile.constScanLine(0));
    for (std::size_t x = 0; x < m_hatch.size(); ++x)
        m_hatch[x] = first[x % static_cast<std::size_t>(m_period)] | 0xff000000u;
}

const QImage& RasterCanvas::tileOf(Paint paint, int tint)
{
    QImage& tile = m_tiles[static_cast<std::size_t>(paint) * tintCount + static_cast<std::size_t>(tint)];
    if (!tile.isNull()) return tile;
    const int side = 2 * m_corner + 2;
    tile = QImage(side, side, QImage::Format_ARGB32_Premultiplied);
    tile.fill(Qt::transparent);
    QPainter painter(&tile);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.scale(m_ratio, m_ratio);
    Fill plain = m_theme.of(paint, tint);
    plain.hatch = Fill::Hatch::None; // drawn over the whole slice, not over its corners
    paintSliceShape(painter, QRectF(0, 0, side / m_ratio, side / m_ratio), plain);
    return tile;
}

void RasterCanvas::fill(const QRect& rect, QRgb colour)
{
    const QRect cut = rect.intersected(m_clip);
    for (int y = cut.top(); y <= cut.bottom(); ++y) std::fill_n(line(y) + cut.left(), cut.width(), colour);
}

void RasterCanvas::hatch(const QRect& rect, int anchor)
{
    const QRect cut = rect.intersected(m_clip);
    for (int y = cut.top(); y <= cut.bottom(); ++y) {
        const int phase = ((cut.left() + y - anchor) % m_period + m_period) % m_period;
        std::copy_n(m_hatch.data() + phase, cut.width(), line(y) + cut.left());
    }
}

void RasterCanvas::slice(const QRect& rect, Paint paint, int tint)
{
    const QImage& tile = tileOf(paint, tint);
    const int side = tile.width(), corner = std::min({m_corner, rect.width() / 2, rect.height() / 2});
    const QRect cut = rect.intersected(m_clip);
    for (int y = cut.top(); y <= cut.bottom(); ++y) {
        const int inside = y - rect.top(), fromEnd = rect.bottom() - y;
        const int row = inside < corner ? inside : fromEnd < corner ? side - 1 - fromEnd : m_corner;
        const auto* source = reinterpret_cast<const QRgb*>(tile.constScanLine(row));
        QRgb* pixels = line(y);
        const auto put = [&](int x, QRgb colour) {
            if (x < cut.left() || x > cut.right()) return;
            pixels[x] = qAlpha(colour) == 255 ? colour : over(colour, pixels[x]);
        };
        for (int i = 0; i < corner; ++i) {
            put(rect.left() + i, source[i]);
            put(rect.right() - i, source[side - 1 - i]);
        }
        const int from = std::max(cut.left(), rect.left() + corner), to = std::min(cut.right(), rect.right() - corner);
        const QRgb middle = source[m_corner];
        if (qAlpha(middle) == 255) {
            if (to >= from) std::fill(pixels + from, pixels + to + 1, middle);
        } else {
            for (int x = from; x <= to; ++x) pixels[x] = over(middle, pixels[x]);
        }
    }
}

} // namespace stagewright
