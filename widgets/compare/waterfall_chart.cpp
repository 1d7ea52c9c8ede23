#include "widgets/compare/waterfall_chart.h"

#include <algorithm>
#include <cmath>

#include <QFontMetricsF>
#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>

#include "widgets/literals.h"

namespace stagewright {

namespace {

constexpr double rowHeight = 31;

QString words(std::string_view text) { return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size())); }

} // namespace

std::vector<WaterfallBar> ledgerBars(const Comparison& comparison, const QString& a, const QString& b)
{
    std::vector<WaterfallBar> bars;
    if (!comparison.sameUnits || comparison.ledgerA.bottleneck < 0 || comparison.ledgerB.bottleneck < 0) return bars;
    std::vector<std::size_t> classes;
    const auto moved = [&](std::size_t i) { return comparison.ledgerB.byClass[i] - comparison.ledgerA.byClass[i]; };
    for (std::size_t i = 0; i < pathClassCount; ++i)
        if (moved(i) != 0) classes.push_back(i);
    std::stable_sort(classes.begin(), classes.end(),
                     [&](std::size_t x, std::size_t y) { return std::llabs(moved(x)) > std::llabs(moved(y)); });
    Nanos now = comparison.ledgerA.makespan;
    bars.push_back({a, u"Step time of the baseline"_s, 0, now, true});
    for (const std::size_t i : classes) {
        const auto part = static_cast<PathClass>(i);
        bars.push_back({words(titleOf(part)),
                        words(meaningOf(part)) + u"\n"_s +
                            u"Classes of the critical path; together they add up to the change in step time."_s,
                        now, now + moved(i), false});
        now += moved(i);
    }
    bars.push_back({b, u"Step time"_s, 0, now, true});
    return bars;
}

std::vector<WaterfallBar> ladderBars(const Comparison& comparison, const QString& b)
{
    std::vector<WaterfallBar> bars;
    if (comparison.ladder.size() < 2) return bars;
    for (const LadderRung& rung : comparison.ladder) {
        QString title = QString::fromStdString(rung.title);
        if (!title.isEmpty()) title[0] = title[0].toUpper();
        const bool first = rung.kind == RungKind::Start;
        bars.push_back({title, u"One change at a time, simulated with A's costs until the costs themselves change."_s,
                        first ? 0 : rung.makespan - rung.change, rung.makespan, first});
    }
    bars.push_back({u"%1 as it ran"_s.arg(b), u"Step time"_s, 0, comparison.ladder.back().makespan, true});
    return bars;
}

WaterfallChart::WaterfallChart(QWidget* parent) : ThemedWidget(parent)
{
    setObjectName(u"waterfall"_s);
    setAccessibleName(u"Waterfall of the change in step time"_s);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void WaterfallChart::setBars(std::vector<WaterfallBar> bars, const Units& units)
{
    m_bars = std::move(bars);
    m_units = units;
    QStringList text;
    for (const auto& row : table().rows) text << row.join(u' ');
    setAccessibleDescription(text.join(u", "_s));
    updateGeometry();
    update();
}

QSize WaterfallChart::sizeHint() const
{
    return {260, static_cast<int>(rowHeight * static_cast<double>(m_bars.size())) + 2};
}

TableText WaterfallChart::table() const
{
    TableText table;
    table.header = {u"part"_s, u"change"_s};
    for (const WaterfallBar& bar : m_bars)
        table.rows.push_back(
            {bar.title, bar.total ? durationText(bar.to, m_units) : signedDurationText(bar.to - bar.from, m_units)});
    return table;
}

void WaterfallChart::paintEvent(QPaintEvent*)
{
    QPainter p(this);
    p.setRenderHint(QPainter::Antialiasing);
    if (m_bars.empty()) return;
    // the axis starts a little below the smallest total, so that changes are visible, and shows that with a broken edge
    Nanos least = m_bars.front().to;
    Nanos most = least;
    for (const WaterfallBar& bar : m_bars) {
        least = std::min({least, bar.to, bar.total ? bar.to : bar.from});
        most = std::max({most, bar.to, bar.from});
    }
    const double range = std::max(1.0, static_cast<double>(most - least));
    const double begin = std::max(0.0, static_cast<double>(least) - range * 0.6);
    const double scale = (width() - 2.0) / (static_cast<double>(most) - begin);
    const auto x = [&](Nanos value) { return 1 + std::max(0.0, (static_cast<double>(value) - begin) * scale); };
    p.setFont(fontOf(FontRole::Small));
    const QFontMetricsF metrics(p.font());
    for (std::size_t i = 0; i < m_bars.size(); ++i) {
        const WaterfallBar& bar = m_bars[i];
        const double top = static_cast<double>(i) * rowHeight;
        const QString value =
            bar.total ? durationText(bar.to, m_units) : signedDurationText(bar.to - bar.from, m_units);
        const double valueWidth = metrics.horizontalAdvance(value) + 2;
        p.setPen(bar.total           ? m_theme->text
                 : bar.to < bar.from ? m_theme->better
                 : bar.to > bar.from ? m_theme->worse
                                     : m_theme->secondary);
        p.drawText(QRectF(width() - valueWidth, top, valueWidth, 16), Qt::AlignRight | Qt::AlignVCenter, value);
        p.setPen(m_theme->secondary);
        QString title = bar.title;
        if (metrics.horizontalAdvance(title) > width() - valueWidth - 6)
            title = metrics.elidedText(title, Qt::ElideRight, width() - valueWidth - 6);
        p.drawText(QRectF(0, top, width() - valueWidth - 4, 16), Qt::AlignLeft | Qt::AlignVCenter, title);
        const double from = bar.total ? 1 : std::min(x(bar.from), x(bar.to));
        const double to = bar.total ? x(bar.to) : std::max(x(bar.from), x(bar.to));
        const QRectF rect(from, top + 17, std::max(1.5, to - from), 8);
        p.setPen(Qt::NoPen);
        p.setBrush(bar.total           ? (i == 0 ? m_theme->faint : m_theme->accent)
                   : bar.to < bar.from ? m_theme->better
                   : bar.to > bar.from ? m_theme->worse
                                       : m_theme->separator);
        p.drawRoundedRect(rect, 1.5, 1.5);
        if (bar.total && begin > 0) { // not from zero
            p.setPen(QPen(m_theme->panel, 2));
            p.drawLine(QPointF(9, rect.top() - 1), QPointF(6, rect.bottom() + 1));
            p.drawLine(QPointF(13, rect.top() - 1), QPointF(10, rect.bottom() + 1));
        }
        if (i + 1 < m_bars.size()) { // carries the total over to the next
            p.setPen(QPen(m_theme->separator, 1, Qt::DotLine));
            p.drawLine(QPointF(x(bar.to), rect.bottom()), QPointF(x(bar.to), rect.bottom() + rowHeight - 8));
        }
    }
}

bool WaterfallChart::event(QEvent* event)
{
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const auto row = static_cast<std::size_t>(std::max(0.0, help->pos().y() / rowHeight));
        if (row < m_bars.size())
            QToolTip::showText(help->globalPos(), m_bars[row].title + u"\n"_s + m_bars[row].tooltip, this);
        return true;
    }
    return QWidget::event(event);
}

} // namespace stagewright
