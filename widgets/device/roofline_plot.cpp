#include "widgets/device/roofline_plot.h"

#include <algorithm>
#include <cmath>

#include <QFontMetricsF>
#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>

#include "schedules/model/kinds.h"
#include "widgets/literals.h"
#include "widgets/numbers.h"

namespace stagewright {
namespace {

constexpr double radius = 8;

QString decadeText(double value, double)
{
    if (std::abs(value - std::round(value)) > 1e-6) return {};
    const double number = std::pow(10.0, std::round(value));
    return number >= 1 ? fixed(number, 0) : QString::number(number);
}

} // namespace

RooflinePlot::RooflinePlot(QWidget* parent) : ThemedWidget(parent)
{
    setObjectName(u"rooflinePlot"_s);
    setAccessibleName(u"Roofline"_s);
    setMouseTracking(true);
}

void RooflinePlot::setRows(std::vector<RooflineRow> rows, std::optional<Ceilings> ceilings)
{
    m_rows = std::move(rows);
    m_ceilings = ceilings;
    QStringList texts;
    for (const RooflineRow& row : m_rows)
        if (shown(row)) texts << textOf(row);
    setAccessibleDescription(texts.join(u"; "_s));
    update();
}

QString RooflinePlot::textOf(const RooflineRow& row) const
{
    const std::string_view kind = ruleOf(row.kind).text;
    return u"%1: %2 TFLOP/s at %3 FLOP/byte, %4 of the device's limit"_s.arg(
        QString::fromUtf8(kind.data(), static_cast<int>(kind.size())), fixed(row.achieved() * 1e-12, 2),
        fixed(row.intensity(), 1), percentText(m_ceilings ? row.share(*m_ceilings) : 0));
}

// Half a decade of room around the points and the ridge, where the two ceilings meet.
PlotFrame RooflinePlot::frameIn(const QRectF& rect) const
{
    PlotFrame frame;
    frame.area = PlotFrame::areaIn(rect);
    frame.x.title = u"FLOP/byte"_s;
    frame.y.title = u"TFLOP/s"_s;
    frame.x.text = frame.y.text = decadeText;
    const double ridge = m_ceilings->flops / m_ceilings->bytesPerSecond;
    double left = ridge, right = ridge, low = m_ceilings->flops;
    for (const RooflineRow& row : m_rows) {
        if (!shown(row)) continue;
        left = std::min(left, row.intensity());
        right = std::max(right, row.intensity());
        low = std::min(low, row.achieved());
    }
    frame.x.least = std::floor(std::log10(left) - 0.3);
    frame.x.most = std::ceil(std::log10(right) + 0.3);
    frame.y.least = std::floor(std::log10(low * 1e-12) - 0.3);
    frame.y.most = std::ceil(std::log10(m_ceilings->flops * 1e-12) + 0.1);
    return frame;
}

QPointF RooflinePlot::placeOf(std::size_t row) const
{
    if (!m_ceilings) return {};
    return frameIn(rect()).place(std::log10(m_rows[row].intensity()), std::log10(m_rows[row].achieved() * 1e-12));
}

void RooflinePlot::paintTo(QPainter& p, const QRectF& rect, const Theme& theme) const
{
    p.fillRect(rect, theme.canvas);
    if (!m_ceilings) return;
    p.save();
    p.setRenderHint(QPainter::Antialiasing);
    const PlotFrame frame = frameIn(rect);
    frame.paint(p, rect, theme);
    const double top = std::log10(m_ceilings->flops * 1e-12), bytes = std::log10(m_ceilings->bytesPerSecond * 1e-12);
    const double ridge = top - bytes; // log of operations a byte
    const QPointF lower = frame.place(frame.x.least, frame.x.least + bytes), corner = frame.place(ridge, top),
                  end = frame.place(frame.x.most, top);
    p.save();
    p.setClipRect(frame.area);
    p.setPen(QPen(theme.critical, 2));
    p.drawLine(lower, corner);
    p.drawLine(corner, end);
    p.restore();
    p.setFont(fontOf(FontRole::Small));
    const QFontMetricsF metrics(p.font());
    LabelPlaces places(frame.area);
    constexpr int piecesOfSlope = 64;
    for (int i = 0; i < piecesOfSlope; ++i)
        places.keepFree(
            QRectF(lower + (corner - lower) * i / piecesOfSlope, (lower + (corner - lower) * (i + 1) / piecesOfSlope))
                .normalized());
    places.keepFree(QRectF(corner - QPointF(0, 2), end + QPointF(0, 2)));
    std::vector<QPointF> at;
    for (const RooflineRow& row : m_rows) {
        at.push_back(shown(row) ? frame.place(std::log10(row.intensity()), std::log10(row.achieved() * 1e-12))
                                : QPointF());
        if (shown(row)) places.keepFree(QRectF(at.back() - QPointF(radius, radius), QSizeF(2 * radius, 2 * radius)));
    }
    const auto label = [&](QPointF beside, const QString& text, const QColor& colour, double distance) {
        const QRectF place =
            places.place(beside, {metrics.horizontalAdvance(text) + 2, metrics.height()}, distance, true);
        if (place.isEmpty()) return;
        p.setPen(colour);
        p.drawText(place, Qt::AlignCenter, text);
    };
    label(frame.place((ridge + frame.x.most) / 2, top), u"%1 TFLOP/s"_s.arg(fixed(m_ceilings->flops * 1e-12, 1)),
          theme.critical, 4);
    const double middle = (std::max(frame.x.least, frame.y.least - bytes) + ridge) / 2;
    label(frame.place(middle, middle + bytes), u"%1 GB/s"_s.arg(fixed(m_ceilings->bytesPerSecond * 1e-9, 0)),
          theme.critical, 8);
    for (std::size_t i = 0; i < m_rows.size(); ++i) {
        if (!shown(m_rows[i])) continue;
        const Fill& fill = theme.of(m_rows[i].kind);
        p.setPen(QPen(fill.edge, 1));
        p.setBrush(fill.fill);
        p.drawEllipse(at[i], radius, radius);
        const std::string_view kind = ruleOf(m_rows[i].kind).text;
        p.setFont(fontOf(FontRole::Label));
        p.setPen(fill.label);
        p.drawText(QRectF(at[i] - QPointF(radius, radius), QSizeF(2 * radius, 2 * radius)), Qt::AlignCenter,
                   QString::fromUtf8(kind.data(), static_cast<int>(kind.size())));
        p.setFont(fontOf(FontRole::Small));
        label(at[i], percentText(m_rows[i].share(*m_ceilings), 0), theme.text, radius + 4);
    }
    p.restore();
}

void RooflinePlot::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    paintTo(painter, rect(), *m_theme);
}

bool RooflinePlot::event(QEvent* event)
{
    if (event->type() != QEvent::ToolTip || !m_ceilings) return QWidget::event(event);
    const auto* help = static_cast<QHelpEvent*>(event);
    for (std::size_t i = 0; i < m_rows.size(); ++i) {
        if (!shown(m_rows[i])) continue;
        const QPointF away = placeOf(i) - QPointF(help->pos());
        if (std::hypot(away.x(), away.y()) > radius + 2) continue;
        QToolTip::showText(help->globalPos(), textOf(m_rows[i]), this);
        return true;
    }
    QToolTip::hideText();
    return true;
}

} // namespace stagewright
