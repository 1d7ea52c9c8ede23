#include "widgets/tools/residual_plot.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include <QFontMetricsF>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>

#include "widgets/literals.h"
#include "widgets/panel/side_panel.h"

namespace stagewright {
namespace {

// 1-2-5 steps, at most `most` in the range.
double stepOf(double range, int most)
{
    const double least = range / most, power = std::pow(10.0, std::floor(std::log10(least)));
    for (const double factor : {1.0, 2.0, 5.0})
        if (factor * power >= least) return factor * power;
    return 10 * power;
}

// One unit for all numbers of an axis, named beside it.
struct AxisUnit {
    double scale = 1;
    QString name;
    QString text(double value, double step, bool sign) const
    {
        const int decimals = std::max(0, static_cast<int>(-std::floor(std::log10(step / scale) + 1e-9)));
        return sign ? signedFixed(value / scale, decimals) : fixed(value / scale, decimals);
    }
};

AxisUnit unitFor(double most, const Units& units)
{
    if (units.time != 1) return {static_cast<double>(units.time), u"units"_s};
    if (most >= 2e9) return {1e9, u"s"_s};
    if (most >= 2e6) return {1e6, u"ms"_s};
    if (most >= 2e3) return {1e3, u"µs"_s};
    return {1, u"ns"_s};
}

void paintMark(QPainter& p, QPointF at, OpKind kind)
{
    constexpr double r = 3;
    if (isForward(kind))
        p.drawEllipse(at, r, r);
    else if (isWeightGrad(kind))
        p.drawPolygon(QPolygonF{at + QPointF(-r, r), at + QPointF(r, r), at + QPointF(0, -r)});
    else if (isRecompute(kind))
        p.drawPolygon(QPolygonF{at + QPointF(-r, 0), at + QPointF(0, r), at + QPointF(r, 0), at + QPointF(0, -r)});
    else
        p.drawRect(QRectF(at.x() - r + 0.5, at.y() - r + 0.5, 2 * r - 1, 2 * r - 1));
}

} // namespace

ResidualPlot::ResidualPlot(QWidget* parent) : QWidget(parent)
{
    setObjectName(u"residualPlot"_s);
    setAccessibleName(u"Residuals of the ops of the step"_s);
    setFocusPolicy(Qt::StrongFocus);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    setMouseTracking(true);
}

void ResidualPlot::setPicture(std::shared_ptr<const ResidualPicture> picture, std::shared_ptr<const Timeline> timeline,
                              const Units& units)
{
    m_picture = std::move(picture);
    m_timeline = std::move(timeline);
    m_units = units;
    setRanges();
    m_drawn = {};
    update();
}

void ResidualPlot::setSelected(SpanId span)
{
    m_selected = span;
    update();
}

void ResidualPlot::setTheme(const Theme& theme)
{
    m_theme = &theme;
    m_drawn = {};
    update();
}

void ResidualPlot::setRanges()
{
    m_least = m_most = m_below = m_above = 0;
    if (!m_picture || m_picture->dots.empty()) return;
    m_least = 1e300;
    for (const ResidualDot& dot : m_picture->dots) {
        const auto predicted = static_cast<double>(dot.of.predicted), residual = static_cast<double>(dot.of.residual());
        m_least = std::min(m_least, predicted);
        m_most = std::max(m_most, predicted);
        m_below = std::min(m_below, residual);
        m_above = std::max(m_above, residual);
    }
    const double across = std::max({(m_most - m_least) * 0.08, m_most * 0.05, 1.0}),
                 up = std::max({(m_above - m_below) * 0.08, m_most * 0.002, 1.0});
    m_least -= across;
    m_most += across;
    m_below -= up;
    m_above += up;
}

QRectF ResidualPlot::plot() const { return {42, 22, std::max(10.0, width() - 50.0), std::max(10.0, height() - 58.0)}; }

QPointF ResidualPlot::placeOf(std::size_t dot) const
{
    const OpResidual& of = m_picture->dots[dot].of;
    const QRectF area = plot();
    return {area.left() + (static_cast<double>(of.predicted) - m_least) / (m_most - m_least) * area.width(),
            area.bottom() - (static_cast<double>(of.residual()) - m_below) / (m_above - m_below) * area.height()};
}

void ResidualPlot::paintAxes(QPainter& p) const
{
    const QRectF area = plot();
    p.setFont(fontOf(FontRole::Small));
    const QFontMetricsF metrics(p.font());
    p.setPen(m_theme->secondary);
    const AxisUnit residual = unitFor(std::max(-m_below, m_above), m_units), predicted = unitFor(m_most, m_units);
    p.drawText(QRectF(0, 0, width(), 16), Qt::AlignLeft | Qt::AlignVCenter,
               u"Measured − predicted, %1"_s.arg(residual.name));
    p.drawText(QRectF(area.left(), height() - 16.0, area.width(), 16), Qt::AlignRight | Qt::AlignVCenter,
               u"Predicted, %1"_s.arg(predicted.name));
    const double up = stepOf(m_above - m_below, 5);
    for (double tick = std::ceil(m_below / up) * up; tick <= m_above; tick += up) {
        const double y = std::round(area.bottom() - (tick - m_below) / (m_above - m_below) * area.height()) + 0.5;
        const bool zero = std::abs(tick) < up / 2;
        p.setPen(QPen(zero ? m_theme->secondary : m_theme->grid, 1));
        p.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
        p.setPen(m_theme->secondary);
        p.drawText(QRectF(0, y - 8, area.left() - 6, 16), Qt::AlignRight | Qt::AlignVCenter,
                   zero ? u"0"_s : residual.text(tick, up, true));
    }
    double free = -1e9;
    const double across = stepOf(m_most - m_least, 4);
    for (double tick = std::ceil(m_least / across) * across; tick <= m_most; tick += across) {
        const double x = std::round(area.left() + (tick - m_least) / (m_most - m_least) * area.width()) + 0.5;
        p.setPen(QPen(m_theme->grid, 1));
        p.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
        const QString text = predicted.text(tick, across, false);
        const double half = metrics.horizontalAdvance(text) / 2;
        if (x - half < free || x + half > width()) continue;
        free = x + half + 8;
        p.setPen(m_theme->secondary);
        p.drawText(QRectF(x - half, area.bottom() + 3, 2 * half + 1, 14), Qt::AlignCenter, text);
    }
}

void ResidualPlot::paintDots(QPainter& p) const
{
    // Marks at the same half pixel are painted once.
    std::unordered_set<std::uint64_t> taken;
    for (std::size_t i = 0; i < m_picture->dots.size(); ++i) {
        const QPointF at = placeOf(i);
        const OpKind kind = m_picture->dots[i].kind;
        const auto key = (static_cast<std::uint64_t>(std::llround(at.x() * 2)) << 32) |
                         (static_cast<std::uint64_t>(std::llround(at.y() * 2)) << 8) | static_cast<std::uint64_t>(kind);
        if (!taken.insert(key).second) continue;
        QColor fill = m_theme->of(kind).fill;
        p.setPen(QPen(m_theme->dark ? fill.lighter(115) : fill.darker(135), 0.75));
        fill.setAlphaF(0.85F);
        p.setBrush(fill);
        paintMark(p, at, kind);
    }
}

void ResidualPlot::paintEvent(QPaintEvent*)
{
    QPainter p(this);
    p.setRenderHint(QPainter::Antialiasing);
    p.fillRect(rect(), m_theme->panel);
    if (!m_picture || m_picture->dots.empty()) return;
    if (m_drawn.deviceIndependentSize() != QSizeF(size()) || m_drawn.devicePixelRatio() != devicePixelRatioF()) {
        m_drawn = QPixmap(size() * devicePixelRatioF());
        m_drawn.setDevicePixelRatio(devicePixelRatioF());
        m_drawn.fill(m_theme->panel);
        QPainter marks(&m_drawn);
        marks.setRenderHint(QPainter::Antialiasing);
        paintAxes(marks);
        paintDots(marks);
    }
    p.drawPixmap(0, 0, m_drawn);
    if (const std::size_t chosen = selectedDot(); chosen < m_picture->dots.size()) {
        p.setBrush(Qt::NoBrush);
        p.setPen(QPen(m_theme->text, 1.75));
        p.drawEllipse(placeOf(chosen), 7, 7);
    }
    if (hasFocus()) {
        p.setBrush(Qt::NoBrush);
        p.setPen(QPen(m_theme->accent, 1));
        p.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 4, 4);
    }
}

std::size_t ResidualPlot::dotAt(QPointF point) const
{
    std::size_t best = m_picture ? m_picture->dots.size() : 0;
    double nearest = 12 * 12;
    for (std::size_t i = 0; m_picture && i < m_picture->dots.size(); ++i) {
        const QPointF away = placeOf(i) - point;
        const double square = QPointF::dotProduct(away, away);
        if (square >= nearest) continue;
        nearest = square;
        best = i;
    }
    return best;
}

std::size_t ResidualPlot::selectedDot() const
{
    if (!m_picture) return 0;
    const auto at = std::find_if(m_picture->dots.begin(), m_picture->dots.end(),
                                 [this](const ResidualDot& dot) { return dot.of.span == m_selected; });
    return m_selected == noSpan ? m_picture->dots.size() : static_cast<std::size_t>(at - m_picture->dots.begin());
}

void ResidualPlot::mousePressEvent(QMouseEvent* event)
{
    if (event->button() != Qt::LeftButton || !m_picture) return;
    if (const std::size_t dot = dotAt(event->position()); dot < m_picture->dots.size())
        emit opChosen(m_picture->dots[dot].of.span);
}

void ResidualPlot::keyPressEvent(QKeyEvent* event)
{
    const int key = event->key();
    if (!m_picture || m_picture->worst.empty() || (key != Qt::Key_Left && key != Qt::Key_Right && key != Qt::Key_Home))
        return QWidget::keyPressEvent(event);
    const auto& order = m_picture->worst;
    const auto at = std::find(order.begin(), order.end(), selectedDot());
    std::size_t next = 0;
    if (at != order.end() && key != Qt::Key_Home) {
        const auto index = static_cast<std::size_t>(at - order.begin());
        next = key == Qt::Key_Right ? std::min(index + 1, order.size() - 1) : index - (index > 0 ? 1 : 0);
    }
    emit opChosen(m_picture->dots[order[next]].of.span);
}

bool ResidualPlot::event(QEvent* event)
{
    if (event->type() == QEvent::ShortcutOverride) {
        const int key = static_cast<QKeyEvent*>(event)->key();
        if (key == Qt::Key_Left || key == Qt::Key_Right || key == Qt::Key_Home) {
            event->accept();
            return true;
        }
    }
    if (event->type() == QEvent::ToolTip && m_picture && m_timeline) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const std::size_t dot = dotAt(help->pos());
        if (dot < m_picture->dots.size()) {
            const OpResidual& of = m_picture->dots[dot].of;
            QToolTip::showText(help->globalPos(),
                               u"%1: predicted %2, measured %3, %4"_s.arg(
                                   opOnRank(*m_timeline, of.span), durationText(of.predicted, m_units),
                                   durationText(of.measured, m_units), signedDurationText(of.residual(), m_units)),
                               this);
        } else {
            QToolTip::hideText();
        }
        return true;
    }
    return QWidget::event(event);
}

} // namespace stagewright
