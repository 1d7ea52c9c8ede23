#include <algorithm>
#include <map>

#include <QFontMetricsF>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QToolTip>

#include "widgets/explore/survey_plots.h"
#include "widgets/explore/survey_text.h"
#include "widgets/literals.h"

namespace stagewright {

namespace {

QColor labelOn(const QColor& fill)
{
    return fill.lightnessF() > 0.5F || fill.green() > 150 ? QColor(0x14, 0x17, 0x1C) : QColor(Qt::white);
}

} // namespace

HeatMap::HeatMap(QWidget* parent) : ThemedWidget(parent)
{
    setObjectName(u"heatMap"_s);
    setAccessibleName(u"Ticked schedules over two parameters"_s);
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
}

void HeatMap::setPicture(std::shared_ptr<const HeatPicture> picture, ExploreMeasure measure, HeatShows shows)
{
    m_picture = std::move(picture);
    m_measure = measure;
    m_shows = shows;
    if (!m_picture || m_cursor >= static_cast<int>(m_picture->cells())) m_cursor = -1;
    update();
}

QRectF HeatMap::areaIn(const QRectF& rect) const { return rect.adjusted(54, 28, -150, -42); }

QRectF HeatMap::cellIn(const QRectF& rect, std::size_t cell) const
{
    const QRectF area = areaIn(rect);
    const double columns = static_cast<double>(m_picture->valuesAcross.size());
    const double rows = static_cast<double>(m_picture->valuesUp.size());
    const auto column = static_cast<double>(cell % m_picture->valuesAcross.size());
    const std::size_t wholeRow = cell / m_picture->valuesAcross.size();
    const auto row = static_cast<double>(wholeRow);
    return {area.left() + column * area.width() / columns, area.bottom() - (row + 1) * area.height() / rows,
            area.width() / columns, area.height() / rows};
}

QRectF HeatMap::cellRect(std::size_t cell) const { return cellIn(rect(), cell); }

int HeatMap::cellAt(QPointF point) const
{
    if (!m_picture) return -1;
    for (std::size_t cell = 0; cell < m_picture->cells(); ++cell)
        if (cellRect(cell).contains(point)) return static_cast<int>(cell);
    return -1;
}

std::vector<int> HeatMap::winners() const
{
    std::map<int, int> often;
    for (std::size_t cell = 0; cell < m_picture->cells(); ++cell)
        if (m_picture->done(cell))
            if (const int best = m_picture->winner(cell); best >= 0) ++often[best];
    std::vector<int> order;
    order.reserve(often.size());
    for (const auto& [schedule, count] : often) order.push_back(schedule);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return often[a] > often[b]; });
    return order;
}

QString HeatMap::tipOf(std::size_t cell) const
{
    const ExploreQuestion asked = m_picture->questionOf(cell);
    QString text = qtText(asked.text());
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < m_picture->schedules.size(); ++i)
        if (m_picture->row(cell, i).good()) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return m_picture->row(cell, a).step < m_picture->row(cell, b).step;
    });
    for (std::size_t i = 0; i < std::min<std::size_t>(order.size(), 5); ++i) {
        const SweepRow& row = m_picture->row(cell, order[i]);
        text += u"\n"_s + u"%1: %2, bubble %3, peak %4"_s.arg(
                              scheduleTitle(m_picture->schedules[order[i]]), shortText(row.timeValue(row.step)),
                              percentText(row.bubbleFraction), shortText(row.memoryValue(row.peak())));
        if (const QString over = qtText(overCap(row, asked)); !over.isEmpty())
            text += u" ("_s + over + u")"_s;
        else if (!row.synchronous)
            text += u" (stale weights)"_s;
    }
    return text;
}

void HeatMap::paintTo(QPainter& p, const QRectF& rect, const Theme& theme) const
{
    p.setRenderHint(QPainter::Antialiasing, false);
    p.setFont(fontOf(FontRole::Small));
    const QRectF area = areaIn(rect);
    if (!m_picture || m_picture->schedules.empty()) {
        p.setPen(theme.secondary);
        p.drawText(area, Qt::AlignCenter, u"tick schedules in the table"_s);
        return;
    }
    const QFontMetricsF metrics(p.font());
    const std::vector<int> order = winners();
    double least = 1e300, most = -1e300;
    for (std::size_t cell = 0; cell < m_picture->cells(); ++cell)
        if (const int best = m_picture->done(cell) ? m_picture->winner(cell) : -1; best >= 0) {
            const double value = measureOf(m_picture->row(cell, static_cast<std::size_t>(best)), m_measure);
            least = std::min(least, value);
            most = std::max(most, value);
        }
    for (std::size_t cell = 0; cell < m_picture->cells(); ++cell) {
        const QRectF place = cellIn(rect, cell).adjusted(0.5, 0.5, -0.5, -0.5);
        if (!m_picture->done(cell)) {
            p.fillRect(place, theme.bubbleFill);
            continue;
        }
        const int best = m_picture->winner(cell);
        if (best < 0) {
            p.fillRect(place, theme.bubbleFill);
            p.setPen(theme.faint);
            p.drawText(place, Qt::AlignCenter, u"–"_s);
            continue;
        }
        const double value = measureOf(m_picture->row(cell, static_cast<std::size_t>(best)), m_measure);
        const auto place_ = static_cast<std::size_t>(std::find(order.begin(), order.end(), best) - order.begin());
        const QColor fill =
            m_shows == HeatShows::Winner
                ? seriesColour(place_, theme)
                : mixed(theme.canvas, theme.accent,
                        static_cast<float>(most > least ? 0.08 + 0.85 * (value - least) / (most - least) : 0.5));
        p.fillRect(place, fill);
        // readable without the colour
        const QString text = m_shows == HeatShows::Winner ? QString(QChar(static_cast<char16_t>(u'a' + place_ % 26)))
                             : m_measure == ExploreMeasure::StepTime ? fixed(value, 1)
                                                                     : fixed(100 * value, 1);
        if (metrics.horizontalAdvance(text) + 3 < place.width() && place.height() > 12) {
            p.setPen(labelOn(fill));
            p.drawText(place, Qt::AlignCenter, text);
        }
    }
    p.setPen(theme.secondary);
    p.drawText(QRectF(rect.left() + 8, rect.top() + 4, rect.width() - 16, 18), Qt::AlignLeft | Qt::AlignVCenter,
               titleOf(m_picture->up) + u"     "_s +
                   (m_shows == HeatShows::Winner ? u"shortest step within the cap"_s
                                                 : u"%1 of the shortest step"_s.arg(qtText(titleOf(m_measure)))));
    p.drawText(QRectF(area.left(), rect.bottom() - 20, area.width(), 16), Qt::AlignRight | Qt::AlignVCenter,
               titleOf(m_picture->across));
    double free = -1e9;
    for (std::size_t i = 0; i < m_picture->valuesAcross.size(); ++i) {
        const QRectF cell = cellIn(rect, i);
        const QString text = qtText(valueText(m_picture->across, m_picture->valuesAcross[i]));
        const double half = metrics.horizontalAdvance(text) / 2;
        if (cell.center().x() - half < free) continue;
        free = cell.center().x() + half + 5;
        p.drawText(QRectF(cell.center().x() - half - 1, area.bottom() + 4, 2 * half + 2, 14), Qt::AlignCenter, text);
    }
    for (std::size_t i = 0; i < m_picture->valuesUp.size(); ++i) {
        const QRectF cell = cellIn(rect, i * m_picture->valuesAcross.size());
        if (cell.height() < 12 && i % 2 == 1) continue;
        p.drawText(QRectF(rect.left(), cell.top(), area.left() - rect.left() - 7, cell.height()),
                   Qt::AlignRight | Qt::AlignVCenter, qtText(valueText(m_picture->up, m_picture->valuesUp[i])));
    }
    double y = area.top();
    const double x = area.right() + 14;
    if (m_shows == HeatShows::Winner) {
        for (std::size_t i = 0; i < order.size() && y + 15 < area.bottom() + 20; ++i, y += 17) {
            const QColor fill = seriesColour(i, theme);
            p.fillRect(QRectF(x, y + 1, 14, 13), fill);
            p.setPen(labelOn(fill));
            p.drawText(QRectF(x, y + 1, 14, 13), Qt::AlignCenter, QString(QChar(static_cast<char16_t>(u'a' + i % 26))));
            p.setPen(theme.text);
            p.drawText(QRectF(x + 19, y, rect.right() - x - 20, 15), Qt::AlignLeft | Qt::AlignVCenter,
                       scheduleTitle(m_picture->schedules[static_cast<std::size_t>(order[i])]));
        }
    } else if (most >= least) {
        p.setPen(theme.text);
        p.drawText(QRectF(x, y, rect.right() - x, 15), Qt::AlignLeft,
                   u"least %1"_s.arg(qtText(measureText(least, m_measure))));
        p.drawText(QRectF(x, y + 17, rect.right() - x, 15), Qt::AlignLeft,
                   u"most %1"_s.arg(qtText(measureText(most, m_measure))));
    }
}

void HeatMap::paintEvent(QPaintEvent*)
{
    QPainter p(this);
    p.fillRect(rect(), m_theme->canvas);
    paintTo(p, rect(), *m_theme);
    p.setBrush(Qt::NoBrush);
    if (m_picture && m_cursor >= 0 && m_cursor < static_cast<int>(m_picture->cells())) {
        p.setPen(QPen(m_theme->text, 2));
        p.drawRect(cellRect(static_cast<std::size_t>(m_cursor)).adjusted(1, 1, -1, -1));
    }
    paintFocus(p);
}

void HeatMap::mouseMoveEvent(QMouseEvent* event)
{
    if (const int cell = cellAt(event->position()); cell >= 0 && cell != m_cursor) {
        m_cursor = cell;
        update();
    }
}

void HeatMap::mousePressEvent(QMouseEvent* event) { mouseMoveEvent(event); }

void HeatMap::mouseDoubleClickEvent(QMouseEvent* event)
{
    if (const int cell = cellAt(event->position()); cell >= 0)
        emit cellActivated(m_picture->questionOf(static_cast<std::size_t>(cell)));
}

void HeatMap::keyPressEvent(QKeyEvent* event)
{
    if (!isPlotKey(event->key()) || !m_picture || m_picture->cells() == 0) return QWidget::keyPressEvent(event);
    const int columns = static_cast<int>(m_picture->valuesAcross.size());
    const int cells = static_cast<int>(m_picture->cells());
    if (m_cursor < 0) {
        m_cursor = 0;
    } else {
        switch (event->key()) {
        case Qt::Key_Left: m_cursor -= m_cursor % columns > 0 ? 1 : 0; break;
        case Qt::Key_Right: m_cursor += m_cursor % columns + 1 < columns ? 1 : 0; break;
        case Qt::Key_Up: m_cursor += m_cursor + columns < cells ? columns : 0; break;
        case Qt::Key_Down: m_cursor -= m_cursor >= columns ? columns : 0; break;
        default: emit cellActivated(m_picture->questionOf(static_cast<std::size_t>(m_cursor))); return;
        }
    }
    setAccessibleDescription(tipOf(static_cast<std::size_t>(m_cursor)));
    update();
}

bool HeatMap::event(QEvent* event)
{
    if (event->type() == QEvent::ShortcutOverride && isPlotKey(static_cast<QKeyEvent*>(event)->key())) {
        event->accept();
        return true;
    }
    if (event->type() == QEvent::ToolTip && m_picture && !m_picture->schedules.empty()) {
        const auto* help = static_cast<QHelpEvent*>(event);
        if (const int cell = cellAt(help->pos()); cell >= 0)
            QToolTip::showText(help->globalPos(), tipOf(static_cast<std::size_t>(cell)), this);
        else
            QToolTip::hideText();
        return true;
    }
    return QWidget::event(event);
}

} // namespace stagewright
