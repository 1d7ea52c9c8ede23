// PlotFrame: the axes of a plot: ranges, 1-2-5 ticks, titles, and the place of a value. Paints with any painter, so
// that screen and exports show the same picture.
#pragma once

#include <functional>
#include <vector>

#include <QPainter>
#include <QPolygonF>
#include <QRectF>
#include <QString>

#include "widgets/theme.h"

namespace stagewright {

struct PlotAxis {
    double least = 0;
    double most = 1;
    QString title;
    std::function<QString(double value, double step)> text; // text of a tick; empty: a plain number
};

struct PlotFrame {
    PlotAxis x, y;
    QRectF area; // area of the points

    // The area inside `rect` without the space for titles and ticks.
    static QRectF areaIn(const QRectF& rect);
    QPointF place(double valueX, double valueY) const;
    void paint(QPainter& painter, const QRectF& rect, const Theme& theme) const;
};

// 1-2-5 steps, at most `most` in the range.
double plotStep(double range, int most);
// Adds margins on both sides of the data, also around a single value.
void widen(PlotAxis& axis, double share);

// The arrows and Enter: what moves the cursor of a plot and opens what is under it.
bool isPlotKey(int key);

// Places labels beside points without overlapping other labels, points, lines or the edge. Returns the rectangle, empty
// if none is free. A label that may be `far` from its point also takes places that are not next to it.
class LabelPlaces {
public:
    explicit LabelPlaces(const QRectF& inside) : m_inside(inside) {}
    void keepFree(const QRectF& rect) { m_taken.push_back(rect); }
    void keepFree(const QPolygonF& line); // of level and upright parts
    QRectF place(QPointF beside, QSizeF size, double distance, bool far);

private:
    QRectF m_inside;
    std::vector<QRectF> m_taken;
};

// A distinct colour for the n-th of a few curves or schedules, which also differ by dashes and marks.
QColor seriesColour(std::size_t index, const Theme& theme);

} // namespace stagewright
