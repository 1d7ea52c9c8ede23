// RasterCanvas: writes rectangles, hatch and slices straight into the scanlines of a frame. One QPainter call per slice
// costs microseconds; this costs a row copy. Device pixels; everything is clipped to the canvas rectangle.
#pragma once

#include <array>
#include <vector>

#include <QImage>
#include <QRect>

#include "widgets/theme.h"

namespace stagewright {

class RasterCanvas {
public:
    // image: RGB32, alive and unshared while the canvas is used. ratio: device pixels per logical pixel.
    RasterCanvas(QImage& image, const QRect& clip, const Theme& theme, double ratio);

    void fill(const QRect& rect, QRgb colour);
    void hatch(const QRect& rect, int anchor);                // anchor: x + y of a point on a line
    void slice(const QRect& rect, Paint paint, int tint = 0); // rounded corners, darker edge; square if under 8 px high
    const QRect& clip() const { return m_clip; }
    QImage& image() { return m_image; }

private:
    QRgb* line(int y) { return reinterpret_cast<QRgb*>(m_bits + static_cast<std::ptrdiff_t>(y) * m_stride); }

    QImage& m_image;
    uchar* m_bits;
    qsizetype m_stride;
    QRect m_clip;
    int m_period;              // of the hatch, along x
    std::vector<QRgb> m_hatch; // one row, long enough to be copied from any phase
    int m_corner;
    const QImage& tileOf(Paint paint, int tint);

    const Theme& m_theme;
    double m_ratio;
    // one small slice each, created on first use: corners, edges, middle
    std::array<QImage, paintCount * tintCount> m_tiles;
};

} // namespace stagewright
