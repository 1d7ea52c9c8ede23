// PlotFrame: the axes of a plot: ranges, 1-2-5 ticks, titles, and where a value lies. Paints with any painter, so that screen
// and exports are the same picture.
#pragma once

#include <functional>
#include <vector>

#include <QPainter>
#include <QRectF>
#include <QString>

#include "widgets/theme.h"

namespace stagewright {

struct PlotAxis {
    double least = 0;
    double most = 1;
    QString title;
    std::function<QString(double value, double step)> text; // of a tick; empty: a plain number
};

struct PlotFrame {
    PlotAxis x, y;
    QRectF area; // where points lie

    // The area inside `rect` that leaves room for titles and ticks.
    static QRectF areaIn(const QRectF& rect);
    QPointF place(double valueX, double valueY) const;
    void paint(QPainter& painter, const QRectF& rect, const Theme& theme) const;
};

// 1-2-5 steps of which at most `most` fit into the range.
double plotStep(double range, int most);
// Room on both sides of the data; a single value gets some of its own.
void widen(PlotAxis& axis, double share);

// Places labels beside points without overlapping each other, points or the edge. Returns the rectangle, empty where none is free.
class LabelPlaces {
public:
    explicit LabelPlaces(const QRectF& inside) : m_inside(inside) {}
    void keepFree(const QRectF& rect) { m_taken.push_back(rect); }
    QRectF place(QPointF beside, QSizeF size, double distance);

private:
    QRectF m_inside;
    std::vector<QRectF> m_taken;
};

// A colour of its own for the n-th of a few curves or schedules, told apart by dashes and marks as well.
QColor seriesColour(std::size_t index, const Theme& theme);

} // namespace stagewright
