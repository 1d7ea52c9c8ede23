#include "widgets/lessons/meter_row.h"

#include <QCoreApplication>
#include <QFontMetrics>
#include <QPainter>

#include "widgets/literals.h"

namespace stagewright {

MeterRow::MeterRow(const MeterReading& reading, const Theme& theme, QWidget* parent)
    : QWidget(parent), m_reading(reading), m_theme(theme)
{
    QSizePolicy policy(QSizePolicy::Preferred, QSizePolicy::Minimum);
    policy.setHeightForWidth(true);
    setSizePolicy(policy);
    setAccessibleName(u"%1: %2, %3"_s.arg(
        reading.subject, reading.needed.isEmpty() ? reading.yours : u"%1 of %2"_s.arg(reading.yours, reading.needed),
        reading.holds ? u"met"_s : u"not met"_s));
    setToolTip(reading.needed.isEmpty()
                   ? reading.subject
                   : u"goal: %1 %2 %3; now: %4"_s.arg(reading.subject, reading.sign, reading.needed, reading.yours));
}

int MeterRow::heightForWidth(int width) const { return words(width) + below(width) + (m_reading.share >= 0 ? 12 : 2); }

void MeterRow::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const int tall = words(width()) + below(width());
    const QColor colour = m_reading.holds ? m_theme.better : m_theme.secondary;
    const QPointF c(8, 11);
    if (m_reading.holds) {
        painter.setPen(Qt::NoPen);
        painter.setBrush(colour);
        painter.drawEllipse(c, 7, 7);
        painter.setPen(
            QPen(m_theme.dark ? m_theme.canvas : m_theme.onAccent, 1.7, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
        painter.drawPolyline(
            QPolygonF{{c.x() - 3, c.y() + 0.2}, {c.x() - 0.8, c.y() + 2.6}, {c.x() + 3.3, c.y() - 2.6}});
    } else {
        painter.setPen(QPen(colour, 1.4));
        painter.drawEllipse(c, 6.5, 6.5);
    }
    painter.setFont(fontOf(FontRole::Body));
    painter.setPen(m_theme.text);
    painter.drawText(QRectF(22, 3, width() - 22 - beside(width()), tall),
                     Qt::AlignTop | Qt::AlignLeft | Qt::TextWordWrap, m_reading.subject);
    painter.setFont(fontOf(FontRole::Strong));
    painter.drawText(QRectF(22, 3 + (below(width()) > 0 ? words(width()) - 4 : 0), width() - 22, tall),
                     Qt::AlignTop | Qt::AlignRight, numbers());
    if (m_reading.share < 0) return;
    const QRectF groove(22, tall + 2, width() - 22, 5);
    painter.setPen(Qt::NoPen);
    painter.setBrush(m_theme.track);
    painter.drawRoundedRect(groove, 2.5, 2.5);
    painter.setBrush(m_reading.holds ? m_theme.better : m_theme.accent);
    // The goal is at three quarters, so that an excess is visible.
    const double full = groove.width() * 0.75;
    painter.drawRoundedRect(
        QRectF(groove.left(), groove.top(), std::clamp(m_reading.share * full, 5.0, groove.width()), groove.height()),
        2.5, 2.5);
    painter.setBrush(m_theme.text);
    painter.drawRect(QRectF(groove.left() + full - 0.75, groove.top() - 3, 1.5, groove.height() + 6));
}

QString MeterRow::numbers() const
{
    if (m_reading.needed.isEmpty() || m_reading.said) return {}; // a sentence says it; the tooltip has the numbers
    if (m_reading.sign == "<="_L1) return m_reading.yours + u" / "_s + m_reading.needed;
    return u"%1 · goal %2"_s.arg(m_reading.yours, sign() + m_reading.needed);
}

int MeterRow::words(int width) const
{
    const QRect room(0, 0, std::max(40, width - 22 - beside(width)), 10000);
    return std::max(
        22, QFontMetrics(fontOf(FontRole::Body)).boundingRect(room, Qt::TextWordWrap, m_reading.subject).height() + 4);
}

QString MeterRow::sign() const
{
    if (m_reading.sign == "=="_L1) return {};
    if (m_reading.sign == ">="_L1) return u"≥ "_s;
    if (m_reading.sign == "<="_L1) return u"≤ "_s;
    if (m_reading.sign == "~"_L1) return u"≈ "_s;
    return m_reading.sign + u' ';
}

int MeterRow::numbersWide() const
{
    return numbers().isEmpty() ? 0 : QFontMetrics(fontOf(FontRole::Strong)).horizontalAdvance(numbers()) + 12;
}
bool MeterRow::stacked(int width) const { return numbersWide() > (width - 22) * 3 / 5; }
int MeterRow::beside(int width) const { return stacked(width) ? 0 : numbersWide(); }
int MeterRow::below(int width) const { return stacked(width) ? QFontMetrics(fontOf(FontRole::Strong)).height() : 0; }

QString keyOf(const std::vector<MeterReading>& meters)
{
    QString key;
    for (const MeterReading& one : meters)
        key += one.subject + one.yours + one.sign + one.needed + (one.holds ? u'1' : u'0');
    return key;
}

} // namespace stagewright
