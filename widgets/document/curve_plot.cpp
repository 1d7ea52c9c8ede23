#include "widgets/document/curve_plot.h"

#include <algorithm>
#include <cmath>

#include <QFontMetricsF>
#include <QPainter>

#include "widgets/literals.h"
#include "widgets/numbers.h"

namespace stagewright {

CurvePlot::CurvePlot(Plot curves, const QString& title, QWidget* parent)
    : CursorPicture(parent), m_curves(std::move(curves)), m_title(title)
{
    setObjectName(u"curvePlot"_s);
    setAccessibleName(title);
    for (const PlotSeries& curve : m_curves.series)
        for (const PlotPoint& point : curve.points) m_across.push_back(point.x);
    std::sort(m_across.begin(), m_across.end());
    m_across.erase(std::unique(m_across.begin(), m_across.end()), m_across.end());
    changed();
}

QString CurvePlot::valueText(const PlotSeries& curve, double x) const
{
    const auto at = std::lower_bound(curve.points.begin(), curve.points.end(), x,
                                     [](const PlotPoint& point, double value) { return point.x < value; });
    return at == curve.points.end() || at->x != x ? u"unknown"_s : fixed(at->y, 3);
}

QString CurvePlot::textOf(int mark) const
{
    if (mark < 0 || mark >= marks()) return {};
    const double x = m_across[static_cast<std::size_t>(mark)];
    QStringList parts;
    for (const PlotSeries& curve : m_curves.series)
        parts << QString::fromStdString(curve.title).toLower() + u' ' + valueText(curve, x);
    return u"%1 %2: %3"_s.arg(QString::fromStdString(m_curves.across)).arg(x).arg(parts.join(u", "_s));
}

TableText CurvePlot::table() const
{
    TableText out;
    out.title = m_title;
    out.header << QString::fromStdString(m_curves.across);
    for (const PlotSeries& curve : m_curves.series) out.header << QString::fromStdString(curve.title);
    for (const double x : m_across) {
        QStringList row{QString::number(x)};
        for (const PlotSeries& curve : m_curves.series) row << valueText(curve, x);
        out.rows.push_back(row);
    }
    return out;
}

PlotFrame CurvePlot::frameIn(const QRectF& rect) const
{
    const PlotPoint least = m_curves.least(), most = m_curves.most();
    PlotFrame frame;
    frame.x = {least.x, std::max(most.x, least.x + 1), QString::fromStdString(m_curves.across), {}};
    frame.y = {least.y, most.y, QString::fromStdString(m_curves.up), {}};
    widen(frame.y, 0.08);
    frame.area = PlotFrame::areaIn(rect);
    return frame;
}

QRectF CurvePlot::markIn(const QRectF& rect, int mark) const
{
    if (mark < 0 || mark >= marks()) return {};
    const PlotFrame frame = frameIn(rect);
    const auto x = [&](int of) {
        return frame.place(m_across[static_cast<std::size_t>(std::clamp(of, 0, marks() - 1))], frame.y.least).x();
    };
    const double left = mark > 0 ? (x(mark - 1) + x(mark)) / 2 : x(mark) - 6,
                 right = mark + 1 < marks() ? (x(mark) + x(mark + 1)) / 2 : x(mark) + 6;
    return {left, frame.area.top(), right - left, frame.area.height()};
}

void CurvePlot::paintTo(QPainter& p, const QRectF& rect, const Theme& theme) const
{
    const PlotFrame frame = frameIn(rect);
    p.setRenderHint(QPainter::Antialiasing, false);
    frame.paint(p, rect, theme);
    p.setRenderHint(QPainter::Antialiasing, true);
    p.setFont(fontOf(FontRole::Small));
    const QFontMetricsF metrics(p.font());
    const auto penOf = [&](std::size_t i) {
        QPen pen(seriesColour(i, theme), 2);
        if (i > 0) pen.setDashPattern({3.5, 2}); // over the first, which shows between where both are equal
        return pen;
    };
    p.setBrush(Qt::NoBrush);
    for (std::size_t i = 0; i < m_curves.series.size(); ++i) {
        p.setPen(penOf(i));
        QPolygonF line;
        for (const PlotPoint& point : m_curves.series[i].points) line << frame.place(point.x, point.y);
        if (line.size() > 1)
            p.drawPolyline(line);
        else
            p.drawEllipse(line.front(), 2.5, 2.5);
    }
    double legend = rect.right() - 16;
    for (std::size_t i = m_curves.series.size(); i-- > 0;) {
        const QString title = QString::fromStdString(m_curves.series[i].title);
        const double wide = metrics.horizontalAdvance(title);
        p.setPen(penOf(i));
        p.drawLine(QPointF(legend - wide - 28, rect.top() + 13), QPointF(legend - wide - 6, rect.top() + 13));
        p.setPen(theme.text);
        p.drawText(QRectF(legend - wide, rect.top() + 4, wide + 2, 18), Qt::AlignLeft | Qt::AlignVCenter, title);
        legend -= wide + 44;
    }
    if (marks() == 0) return;
    const double x = frame.place(m_across[static_cast<std::size_t>(cursor())], frame.y.least).x();
    p.setRenderHint(QPainter::Antialiasing, false);
    p.setPen(QPen(theme.accent, 1));
    p.drawLine(QPointF(x, frame.area.top()), QPointF(x, frame.area.bottom()));
    p.setPen(theme.secondary);
    p.drawText(QRectF(frame.area.left(), rect.bottom() - 20,
                      frame.area.width() - metrics.horizontalAdvance(frame.x.title) - 12, 16),
               Qt::AlignLeft | Qt::AlignVCenter, textOf(cursor()));
}

} // namespace stagewright
