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
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Expanding);
}

void DurationBars::setLine(const AggregateLine* line, const Units& units)
{
    m_line = line != nullptr ? *line : AggregateLine{};
    m_units = units;
    setAccessibleName(u"Durations of %1"_s.arg(m_line.name));
    setAccessibleDescription(figures());
    update();
}

QColor DurationBars::colour() const
{
    if (m_line.of) return m_theme->of(*m_line.of).fill;
    if (m_line.kind) return m_theme->of(*m_line.kind).fill;
    return m_line.what == AggregateLine::What::Idle ? m_theme->bubbleHatch : m_theme->accent;
}

QString DurationBars::figures() const
{
    const DurationSpread& of = m_line.durations;
    return m_line.count == 1 ? durationText(m_line.total, m_units)
                             : u"median %1, 95 %: at most %2"_s.arg(durationText(of.median, m_units),
                                                                    durationText(of.percentile95, m_units));
}

QRectF DurationBars::bars() const { return QRectF(rect()).adjusted(8, 40, -8, -20); }

void DurationBars::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    const DurationSpread& of = m_line.durations;
    if (of.bars.empty()) return;
    const QRectF area = bars();
    painter.setFont(fontOf(FontRole::Small));
    painter.setPen(m_theme->text);
    const QFontMetrics metrics(painter.font());
    painter.drawText(QRectF(8, 2, width() - 16, 16), Qt::AlignLeft | Qt::AlignVCenter,
                     metrics.elidedText(u"Durations: %1"_s.arg(m_line.name), Qt::ElideMiddle, width() - 16));
    painter.setPen(m_theme->secondary);
    painter.drawText(QRectF(8, 18, width() - 16, 16), Qt::AlignLeft | Qt::AlignVCenter, figures());
    const double bar = area.width() / static_cast<double>(of.bars.size());
    const auto most = static_cast<double>(*std::max_element(of.bars.begin(), of.bars.end()));
    for (std::size_t i = 0; i < of.bars.size(); ++i) {
        if (of.bars[i] == 0) continue;
        const double height = std::max(2.0, area.height() * static_cast<double>(of.bars[i]) / most);
        painter.fillRect(
            QRectF(area.left() + static_cast<double>(i) * bar, area.bottom() - height, std::max(1.0, bar - 1), height),
            colour());
    }
    painter.fillRect(QRectF(area.left(), area.bottom(), area.width(), 1), m_theme->separator);
    painter.drawText(QRectF(area.left(), area.bottom() + 2, area.width() / 2, 16), Qt::AlignLeft | Qt::AlignVCenter,
                     durationText(of.least, m_units));
    if (of.most > of.least)
        painter.drawText(QRectF(area.center().x(), area.bottom() + 2, area.width() / 2, 16),
                         Qt::AlignRight | Qt::AlignVCenter, durationText(of.most, m_units));
}

bool DurationBars::event(QEvent* event)
{
    if (event->type() != QEvent::ToolTip) return QWidget::event(event);
    const auto* help = static_cast<QHelpEvent*>(event);
    const DurationSpread& of = m_line.durations;
    const QRectF area = bars();
    const double bar = of.bars.empty() ? 0 : area.width() / static_cast<double>(of.bars.size());
    const auto at = bar > 0 ? static_cast<std::ptrdiff_t>(std::floor((help->pos().x() - area.left()) / bar)) : -1;
    if (at < 0 || at >= static_cast<std::ptrdiff_t>(of.bars.size())) {
        QToolTip::hideText();
        return true;
    }
    const auto number = static_cast<std::size_t>(at);
    QToolTip::showText(help->globalPos(),
                       u"%L1 took %2 to %3"_s.arg(of.bars[number])
                           .arg(durationText(std::llround(of.begin(number)), m_units),
                                durationText(std::llround(of.begin(number + 1)), m_units)),
                       this);
    return true;
}

} // namespace stagewright
