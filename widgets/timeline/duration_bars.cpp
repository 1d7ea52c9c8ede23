#include "widgets/timeline/duration_bars.h"

#include <algorithm>
#include <cmath>

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>

#include "widgets/literals.h"
#include "widgets/numbers.h"

namespace stagewright {

DurationBars::DurationBars(QWidget* parent) : ThemedWidget(parent)
{
    setObjectName(u"durationBars"_s);
    setMinimumWidth(220);
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Expanding);
}

void DurationBars::setLine(const AggregateLine* line, const Units& units)
{
    m_line = line != nullptr ? *line : AggregateLine{};
    m_units = units;
    setAccessibleName(u"Durations of %1"_s.arg(m_line.name));
    setAccessibleDescription(u"median %1, 95 %: at most %2"_s.arg(
        durationText(std::min(m_line.durations.quantile(0.5), m_line.most), m_units),
        durationText(std::min(m_line.durations.quantile(0.95), m_line.most), m_units)));
    update();
}

QColor DurationBars::colour() const
{
    if (m_line.of) return m_theme->of(*m_line.of).fill;
    if (m_line.kind) return m_theme->of(*m_line.kind).fill;
    return m_line.what == AggregateLine::What::Idle ? m_theme->bubbleHatch : m_theme->accent;
}

QRectF DurationBars::bars() const { return QRectF(rect()).adjusted(8, 40, -8, -20); }

void DurationBars::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    const auto& counts = m_line.durations.counts;
    if (counts.empty()) return;
    const QRectF area = bars();
    painter.setFont(fontOf(FontRole::Small));
    painter.setPen(m_theme->text);
    const QFontMetrics metrics(painter.font());
    painter.drawText(QRectF(8, 2, width() - 16, 16), Qt::AlignLeft | Qt::AlignVCenter,
                     metrics.elidedText(u"Durations: %1"_s.arg(m_line.name), Qt::ElideMiddle, width() - 16));
    painter.setPen(m_theme->secondary);
    painter.drawText(QRectF(8, 18, width() - 16, 16), Qt::AlignLeft | Qt::AlignVCenter,
                     m_line.count == 1
                         ? durationText(m_line.total, m_units)
                         : u"median %1, 95 %: at most %2"_s.arg(
                               durationText(std::min(m_line.durations.quantile(0.5), m_line.most), m_units),
                               durationText(std::min(m_line.durations.quantile(0.95), m_line.most), m_units)));
    const double each = area.width() / static_cast<double>(counts.size());
    const double bar = std::min(each, 24.0);
    const double left = area.left();
    const auto most = static_cast<double>(*std::max_element(counts.begin(), counts.end()));
    for (std::size_t i = 0; i < counts.size(); ++i) {
        if (counts[i] == 0) continue;
        const double height = std::max(2.0, area.height() * static_cast<double>(counts[i]) / most);
        painter.fillRect(
            QRectF(left + static_cast<double>(i) * bar, area.bottom() - height, std::max(1.0, bar - 1), height),
            colour());
    }
    painter.fillRect(QRectF(area.left(), area.bottom(), area.width(), 1), m_theme->separator);
    painter.drawText(QRectF(area.left(), area.bottom() + 2, area.width() / 2, 16), Qt::AlignLeft | Qt::AlignVCenter,
                     durationText(m_line.least, m_units));
    if (m_line.most > m_line.least)
        painter.drawText(QRectF(area.center().x(), area.bottom() + 2, area.width() / 2, 16),
                         Qt::AlignRight | Qt::AlignVCenter, durationText(m_line.most, m_units));
}

bool DurationBars::event(QEvent* event)
{
    if (event->type() != QEvent::ToolTip) return QWidget::event(event);
    const auto* help = static_cast<QHelpEvent*>(event);
    const auto& counts = m_line.durations.counts;
    const QRectF area = bars();
    const double bar = counts.empty() ? 0 : std::min(area.width() / static_cast<double>(counts.size()), 24.0);
    const auto at = bar > 0 ? static_cast<std::ptrdiff_t>(std::floor((help->pos().x() - area.left()) / bar)) : -1;
    if (at < 0 || at >= static_cast<std::ptrdiff_t>(counts.size())) {
        QToolTip::hideText();
        return true;
    }
    const int number = m_line.durations.first + static_cast<int>(at);
    QToolTip::showText(help->globalPos(),
                       u"%L1 took %2 to %3"_s.arg(counts[static_cast<std::size_t>(at)])
                           .arg(durationText(DurationHistogram::begin(number), m_units),
                                durationText(DurationHistogram::begin(number + 1), m_units)),
                       this);
    return true;
}

} // namespace stagewright
