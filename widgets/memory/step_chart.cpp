#include "widgets/memory/step_chart.h"

#include <algorithm>
#include <cmath>

#include <QCoreApplication>
#include <QFontMetricsF>
#include <QPainterPath>

namespace stagewright {

Bytes MemoryCurve::at(Nanos time) const
{
    const auto after = std::upper_bound(points.begin(), points.end(), time, [](Nanos t, const MemoryPoint& p) { return t < p.time; });
    return after == points.begin() ? 0 : (after - 1)->inUse;
}

MemoryCurve curveOf(const MemorySeries& series, Nanos origin, Nanos duration)
{
    MemoryCurve curve;
    curve.end = duration;
    curve.peak = series.peak;
    curve.peakTime = series.peakTime - origin;
    curve.points.reserve(series.points.size());
    for (const MemoryPoint& point : series.points) curve.points.push_back({point.time - origin, point.inUse});
    return curve;
}

QRectF MemoryScene::plot(int row) const
{
    const double upper = headerHeight + row * rowHeight - scroll + 14;
    return {axis.left, upper, axis.width, std::max(1.0, rowHeight - 18)};
}

double MemoryScene::y(int row, Bytes bytes) const
{
    const QRectF rect = plot(row);
    return rect.bottom() - rect.height() * static_cast<double>(bytes) / static_cast<double>(std::max<Bytes>(1, top));
}

namespace {

struct ByteUnit {
    double size;
    QString name;
};
ByteUnit byteUnit(Bytes top, const Units& units)
{
    if (units.memory != 1) return {static_cast<double>(units.memory), QCoreApplication::translate("MemoryView", "activation shares (u)")};
    for (const auto& [size, name] : {std::pair{1073741824.0, "GiB"}, {1048576.0, "MiB"}, {1024.0, "KiB"}}) {
        if (static_cast<double>(top) >= size) return {size, QString::fromLatin1(name)};
    }
    return {1, QStringLiteral("B")};
}

// The outline of a step curve, one vertical and one horizontal line per change. Where changes crowd, every pixel column
// keeps its least, its largest and its last value.
class Outline {
public:
    Outline(const MemoryScene& scene, int row, const MemoryCurve& curve) : m_scene(scene), m_row(row), m_curve(curve) {}

    QPolygonF build()
    {
        const Axis& axis = m_scene.axis;
        const auto& points = m_curve.points;
        const Nanos from = std::max<Nanos>(0, axis.range.begin), to = std::min(m_curve.end, axis.range.end + axis.range.duration() / 20);
        if (to <= from) return {};
        const auto after = [&](Nanos t) {
            return static_cast<std::size_t>(
                std::upper_bound(points.begin(), points.end(), t, [](Nanos v, const MemoryPoint& p) { return v < p.time; }) - points.begin());
        };
        const std::size_t first = after(from), last = after(to);
        Bytes value = m_curve.at(from);
        m_line << QPointF(axis.toX(from), m_scene.y(m_row, value));
        const bool crowded = static_cast<double>(last - first) > 2 * axis.width;
        for (std::size_t i = first; i < last;) {
            const double x = axis.toX(points[i].time);
            m_line << QPointF(x, m_scene.y(m_row, value));
            if (!crowded) {
                value = points[i++].inUse;
            } else {
                const double column = std::floor(x) + 1;
                Bytes least = value, most = value;
                for (; i < last && axis.toX(points[i].time) < column; ++i) {
                    value = points[i].inUse;
                    least = std::min(least, value);
                    most = std::max(most, value);
                }
                m_line << QPointF(x, m_scene.y(m_row, least)) << QPointF(x, m_scene.y(m_row, most));
            }
            m_line << QPointF(x, m_scene.y(m_row, value));
        }
        m_line << QPointF(axis.toX(to), m_scene.y(m_row, value));
        return m_line;
    }

private:
    const MemoryScene& m_scene;
    int m_row;
    const MemoryCurve& m_curve;
    QPolygonF m_line;
};

void paintRow(QPainter& p, const MemoryScene& scene, const Theme& theme, int index)
{
    const MemoryRow& row = (*scene.rows)[static_cast<std::size_t>(index)];
    const QRectF plot = scene.plot(index);
    const double right = scene.axis.left + scene.axis.width + rightMargin / 2;
    const ByteUnit unit = byteUnit(scene.top, scene.units);

    p.setFont(fontOf(FontRole::Small));
    for (const Bytes tick : memoryTicks(scene.top, plot.height(), 14, scene.units)) {
        const double y = std::round(scene.y(index, tick));
        p.fillRect(QRectF(plot.left(), y, right - plot.left(), 1), tick == 0 ? theme.separator : theme.grid);
        p.setPen(theme.faint);
        const double value = static_cast<double>(tick) / unit.size;
        const QString text = fixed(value, value == std::floor(value) ? 0 : value * 10 == std::floor(value * 10) ? 1 : 2);
        p.drawText(QRectF(100, y - (tick == 0 ? 12 : 8), 46, 16), Qt::AlignRight | Qt::AlignVCenter, text);
    }

    p.save();
    p.setClipRect(QRectF(plot.left() - 1, scene.headerHeight, right - plot.left() + 2, scene.size.height()), Qt::IntersectClip);
    const QPolygonF outline = Outline(scene, index, row.curve).build();
    if (outline.size() >= 2) {
        QPolygonF area = outline;
        area << QPointF(outline.back().x(), plot.bottom()) << QPointF(outline.front().x(), plot.bottom());
        p.setPen(Qt::NoPen);
        p.setBrush(theme.memoryFill);
        p.drawPolygon(area);
        p.setBrush(Qt::NoBrush);
        p.setPen(QPen(theme.memoryLine, 1.5, Qt::SolidLine, Qt::FlatCap, Qt::MiterJoin));
        p.drawPolyline(outline);
    }
    if (row.ghost) {
        QPen dashed(theme.ghost, 1.2);
        dashed.setDashPattern({4, 2.5});
        dashed.setCapStyle(Qt::FlatCap);
        p.setPen(dashed);
        p.drawPolyline(Outline(scene, index, *row.ghost).build());
    }
    if (scene.budget && *scene.budget <= scene.top) {
        QPen dashed(theme.critical, 1.2);
        dashed.setDashPattern({5, 2.5});
        dashed.setCapStyle(Qt::FlatCap);
        p.setPen(dashed);
        const double y = scene.y(index, *scene.budget);
        p.drawLine(QPointF(plot.left(), y), QPointF(right, y));
    }
    if (row.curve.peak > 0 && row.curve.peakTime <= scene.axis.range.end && row.curve.peakTime >= scene.axis.range.begin) {
        p.setPen(QPen(theme.canvas, 1.5));
        p.setBrush(theme.memoryLine);
        p.drawEllipse(QPointF(scene.axis.toX(row.curve.peakTime), scene.y(index, row.curve.peak)), 4, 4);
    }
    if (scene.hoverTime && *scene.hoverTime >= 0 && *scene.hoverTime < row.curve.end) {
        p.setPen(QPen(theme.memoryLine, 1.5));
        p.setBrush(theme.canvas);
        p.drawEllipse(QPointF(scene.axis.toX(*scene.hoverTime), scene.y(index, row.curve.at(*scene.hoverTime))), 3, 3);
    }
    p.restore();

    const double middle = plot.center().y() - 4;
    p.setFont(fontOf(FontRole::Rank));
    p.setPen(theme.text);
    p.drawText(QPointF(16, middle), row.title);
    p.setFont(fontOf(FontRole::Small));
    const bool over = scene.budget && row.curve.peak > *scene.budget;
    p.setPen(over ? theme.critical : theme.secondary);
    p.drawText(QPointF(16, middle + 15), row.subtitle);
}

} // namespace

std::vector<Bytes> memoryTicks(Bytes top, double height, double minSpacing, const Units& units)
{
    std::vector<Bytes> ticks{0};
    if (top <= 0 || height <= 0) return ticks;
    const double unit = byteUnit(top, units).size;
    const double least = std::max(static_cast<double>(top) / unit * minSpacing / height, 1 / unit);
    const double power = std::pow(10.0, std::floor(std::log10(least)));
    double step = 10 * power;
    for (const int lead : {5, 2, 1}) {
        if (lead * power >= least * (1 - 1e-9)) step = lead * power;
    }
    for (int n = 1; n * step * unit <= static_cast<double>(top) * (1 + 1e-12); ++n) {
        ticks.push_back(static_cast<Bytes>(std::llround(n * step * unit)));
    }
    return ticks;
}

void paintMemory(QPainter& p, const MemoryScene& scene, const Theme& theme)
{
    p.save();
    p.setRenderHint(QPainter::Antialiasing);
    p.fillRect(QRectF(QPointF(0, 0), scene.size), theme.canvas);
    if (scene.rows != nullptr && !scene.axis.degenerate()) {
        p.save();
        p.setClipRect(QRectF(0, scene.headerHeight, scene.size.width(), std::max(0.0, scene.size.height() - scene.headerHeight)),
                      Qt::IntersectClip);
        for (int i = 0; i < static_cast<int>(scene.rows->size()); ++i) {
            const QRectF plot = scene.plot(i);
            if (plot.bottom() + 4 >= scene.headerHeight && plot.top() - 14 <= scene.size.height()) paintRow(p, scene, theme, i);
        }
        if (scene.hoverTime) {
            const double x = scene.axis.toX(*scene.hoverTime);
            if (x >= scene.axis.left && x <= scene.axis.left + scene.axis.width + rightMargin) {
                QPen pen(theme.text, 1);
                pen.setDashPattern({3, 3});
                pen.setCapStyle(Qt::FlatCap);
                p.setPen(pen);
                p.drawLine(QPointF(x, scene.headerHeight), QPointF(x, scene.size.height()));
            }
        }
        p.restore();
    }
    p.fillRect(QRectF(0, 0, scene.size.width(), scene.headerHeight), theme.canvas);
    p.fillRect(QRectF(0, 0, scene.size.width(), 1), theme.separator);
    p.fillRect(QRectF(0, scene.headerHeight - 1, scene.size.width(), 1), theme.separator);
    p.setFont(fontOf(FontRole::Strong));
    p.setPen(theme.text);
    const double titleWidth = QFontMetricsF(p.font()).horizontalAdvance(scene.title);
    p.drawText(QRectF(16, 0, titleWidth + 4, scene.headerHeight), Qt::AlignVCenter | Qt::AlignLeft, scene.title);
    p.setFont(fontOf(FontRole::Small));
    p.setPen(theme.secondary);
    const double left = std::max(gutterWidth, 16 + titleWidth + 16);
    p.drawText(QRectF(left, 0, std::max(0.0, scene.size.width() - left), scene.headerHeight), Qt::AlignVCenter | Qt::AlignLeft, scene.subtitle);
    p.restore();
}

} // namespace stagewright
