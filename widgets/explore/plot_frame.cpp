#include "widgets/explore/plot_frame.h"

#include <algorithm>
#include <cmath>

#include <QFontMetricsF>

#include "widgets/numbers.h"

namespace stagewright {

namespace {

QString plain(double value, double step)
{
    return fixed(value, std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9))));
}

QString tickText(const PlotAxis& axis, double value, double step)
{
    return axis.text ? axis.text(value, step) : plain(value, step);
}

} // namespace

bool isPlotKey(int key)
{
    return key == Qt::Key_Left || key == Qt::Key_Right || key == Qt::Key_Up || key == Qt::Key_Down ||
           key == Qt::Key_Return || key == Qt::Key_Enter;
}

double plotStep(double range, int most)
{
    const double least = std::max(range, 1e-12) / std::max(1, most);
    const double power = std::pow(10.0, std::floor(std::log10(least)));
    for (const double factor : {1.0, 2.0, 5.0})
        if (factor * power >= least - 1e-12) return factor * power;
    return 10 * power;
}

void widen(PlotAxis& axis, double share)
{
    double range = axis.most - axis.least;
    if (range <= 0) range = std::max(1e-3, std::abs(axis.most) * 0.2);
    axis.least -= range * share;
    axis.most += range * share;
}

QRectF PlotFrame::areaIn(const QRectF& rect) { return rect.adjusted(54, 28, -16, -42); }

QPointF PlotFrame::place(double valueX, double valueY) const
{
    return {area.left() + (valueX - x.least) / (x.most - x.least) * area.width(),
            area.bottom() - (valueY - y.least) / (y.most - y.least) * area.height()};
}

void PlotFrame::paint(QPainter& p, const QRectF& rect, const Theme& theme) const
{
    p.setFont(fontOf(FontRole::Small));
    const QFontMetricsF metrics(p.font());
    p.setPen(theme.secondary);
    p.drawText(QRectF(rect.left() + 8, rect.top() + 4, rect.width() - 16, 18), Qt::AlignLeft | Qt::AlignVCenter,
               y.title);
    p.drawText(QRectF(area.left(), rect.bottom() - 20, area.width(), 16), Qt::AlignRight | Qt::AlignVCenter, x.title);
    const double up = plotStep(y.most - y.least, std::max(2, static_cast<int>(area.height() / 44)));
    for (double tick = std::ceil(y.least / up) * up; tick <= y.most + up * 1e-6; tick += up) {
        const double at = std::round(place(x.least, tick).y()) + 0.5;
        p.setPen(QPen(theme.grid, 1));
        p.drawLine(QPointF(area.left(), at), QPointF(area.right(), at));
        p.setPen(theme.secondary);
        p.drawText(QRectF(rect.left(), at - 8, area.left() - rect.left() - 7, 16), Qt::AlignRight | Qt::AlignVCenter,
                   tickText(y, std::abs(tick) < up * 1e-6 ? 0 : tick, up));
    }
    const double across = plotStep(x.most - x.least, std::max(2, static_cast<int>(area.width() / 70)));
    double free = -1e9;
    for (double tick = std::ceil(x.least / across) * across; tick <= x.most + across * 1e-6; tick += across) {
        const double at = std::round(place(tick, y.least).x()) + 0.5;
        p.setPen(QPen(theme.grid, 1));
        p.drawLine(QPointF(at, area.top()), QPointF(at, area.bottom()));
        const QString text = tickText(x, std::abs(tick) < across * 1e-6 ? 0 : tick, across);
        const double half = metrics.horizontalAdvance(text) / 2;
        if (at - half < free || at + half > rect.right()) continue;
        free = at + half + 8;
        p.setPen(theme.secondary);
        p.drawText(QRectF(at - half - 1, area.bottom() + 4, 2 * half + 2, 14), Qt::AlignCenter, text);
    }
    p.setPen(QPen(theme.separator, 1));
    p.setBrush(Qt::NoBrush);
    p.drawRect(QRectF(std::round(area.left()) + 0.5, std::round(area.top()) + 0.5, std::round(area.width()),
                      std::round(area.height())));
}

void LabelPlaces::keepFree(const QPolygonF& line)
{
    for (qsizetype i = 1; i < line.size(); ++i)
        m_taken.push_back(QRectF(line[i - 1], line[i]).normalized().adjusted(-0.5, -0.5, 0.5, 0.5));
}

QRectF LabelPlaces::place(QPointF beside, QSizeF size, double distance, bool far)
{
    const double w = size.width();
    const double h = size.height();
    for (const double away : {distance, distance + 9, distance + 20}) {
        if (away > distance && !far) break;
        const QPointF offsets[] = {{away, -h / 2},
                                   {away * 0.7, -h - away * 0.4},
                                   {away * 0.7, away * 0.4},
                                   {-w - away, -h / 2},
                                   {-w - away * 0.7, -h - away * 0.4},
                                   {-w - away * 0.7, away * 0.4},
                                   {-w / 2, -h - away},
                                   {-w / 2, away}};
        for (const QPointF& offset : offsets) {
            const QRectF rect(beside + offset, size);
            if (!m_inside.contains(rect)) continue;
            const QRectF wide = rect.adjusted(-1, -1, 1, 1);
            if (std::any_of(m_taken.begin(), m_taken.end(),
                            [&](const QRectF& taken) { return taken.intersects(wide); }))
                continue;
            m_taken.push_back(rect);
            return rect;
        }
    }
    return {};
}

QColor seriesColour(std::size_t index, const Theme& theme)
{
    // the palette's kinds, which stay distinct under colour-vision deficiency, then the greys
    const QColor colours[] = {theme.of(Paint::Forward).fill,
                              theme.of(Paint::Backward).fill,
                              theme.of(Paint::Weight).fill,
                              theme.of(Paint::Communication).fill,
                              theme.critical,
                              theme.secondary,
                              theme.of(Paint::Optimizer).fill,
                              theme.faint};
    return colours[index % std::size(colours)];
}

} // namespace stagewright
