#include <algorithm>
#include <cmath>

#include <QFontMetricsF>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QToolTip>
#include <QWheelEvent>

#include "widgets/explore/plot_frame.h"
#include "widgets/explore/state_view.h"
#include "widgets/explore/survey_text.h"
#include "widgets/literals.h"
#include "widgets/memory/step_chart.h"
#include "widgets/timeline/geometry.h"

namespace stagewright {

namespace {

constexpr double rowHeight = 22, headHeight = 22, footHeight = 14, nameWidth = 150;
constexpr int levels = 4;
constexpr double mostAbove = 3; // a limit more than so many times the bars is named, not drawn

QString levelTitle(int level) { return qtText(zeroTitle(static_cast<std::size_t>(level))); }

QString zeroTitleIn(double width, int level, const QFontMetricsF& metrics)
{
    const QString title = levelTitle(level);
    return metrics.horizontalAdvance(title) <= width ? title : u"ZeRO %1"_s.arg(level);
}

} // namespace

StatePicture::StatePicture(QWidget* parent) : ThemedWidget(parent)
{
    setObjectName(u"statePicture"_s);
    setAccessibleName(u"Memory and time by what replicas share"_s);
    setFocusPolicy(Qt::StrongFocus);
}

void StatePicture::setRows(StateRows rows, const StateQuestion& question)
{
    m_rows = std::move(rows);
    m_question = question;
    const int count = m_rows ? static_cast<int>(m_rows->size()) : 0;
    for (int i = 0; !m_chosen && i < count; ++i)
        if ((*m_rows)[static_cast<std::size_t>(i)].schedule == "1f1b") m_row = i;
    m_row = std::clamp(m_row, 0, std::max(0, count - 1));
    m_first = std::clamp(m_first, 0, std::max(0, count - 1));
    setAccessibleDescription(textOf(m_row, m_level));
    update();
}

bool StatePicture::over(const StateCell& cell) const { return cell.over(m_question); }

void StatePicture::choose(int row, int level)
{
    if (!m_rows || row < 0 || row >= static_cast<int>(m_rows->size())) return;
    m_chosen = true;
    m_row = row;
    m_level = std::clamp(level, 0, levels - 1);
    const int shown = rowsIn(gridIn(rect()));
    m_first = std::clamp(m_first, std::max(0, row - shown + 1), row);
    setAccessibleDescription(textOf(m_row, m_level));
    update();
    emit chosen();
}

QString StatePicture::textOf(int row, int level) const
{
    if (!m_rows || row < 0 || row >= static_cast<int>(m_rows->size())) return {};
    const StateRow& of = (*m_rows)[static_cast<std::size_t>(row)];
    const StateCell& cell = of.cells[static_cast<std::size_t>(level)];
    QString name = scheduleTitle(of.schedule) + u", "_s + levelTitle(level);
    if (!cell.done) return name;
    if (!cell.good()) return name + u": "_s + QString::fromStdString(cell.error);
    QString text = u"%1: a step takes %2; rank %3 holds %4"_s.arg(name, durationText(cell.step))
                       .arg(cell.rank)
                       .arg(bytesText(cell.peak()));
    QStringList parts;
    for (const MemoryCategory category : stackedCategories)
        if (const Bytes bytes = cell.held[static_cast<std::size_t>(category)]; bytes > 0)
            parts << u"%1 %2"_s.arg(titleOf(category).toLower(), bytesText(bytes));
    if (!parts.isEmpty()) text += u": "_s + parts.join(u", "_s);
    text += u". It receives %1 in gathers and %2 in reductions a step."_s.arg(
        bytesText(static_cast<Bytes>(cell.gathered)), bytesText(static_cast<Bytes>(cell.reduced)));
    if (over(cell))
        text += u' ' + u"A rank has %1: it does not fit."_s.arg(bytesText(static_cast<Bytes>(m_question.capacity())));
    return text;
}

SurveyTable StatePicture::answer() const { return m_rows ? stateTable(*m_rows, m_question) : SurveyTable(); }

// The bars above, the grid below.
QRectF StatePicture::gridIn(const QRectF& rect) const
{
    return {rect.left() + 8, rect.top() + std::round(rect.height() * 0.46), rect.width() - 16,
            rect.height() - std::round(rect.height() * 0.46) - 6};
}

int StatePicture::rowsIn(const QRectF& grid) const
{
    return std::max(1, static_cast<int>((grid.height() - headHeight - footHeight) / rowHeight));
}

QRectF StatePicture::cellIn(const QRectF& rect, int row, int level) const
{
    const QRectF grid = gridIn(rect);
    if (row < m_first || row >= m_first + rowsIn(grid)) return {};
    const double width = (grid.width() - nameWidth) / levels;
    return {grid.left() + nameWidth + level * width, grid.top() + headHeight + (row - m_first) * rowHeight, width,
            rowHeight};
}

QRectF StatePicture::cellRect(int row, int level) const { return cellIn(rect(), row, level); }

std::pair<int, int> StatePicture::cellAt(QPointF point) const
{
    const int count = m_rows ? static_cast<int>(m_rows->size()) : 0;
    for (int row = m_first; row < count; ++row)
        for (int level = 0; level < levels; ++level)
            if (cellRect(row, level).contains(point)) return {row, level};
    return {-1, -1};
}

void StatePicture::paintBars(QPainter& p, const QRectF& rect, const Theme& theme) const
{
    const StateRow& of = (*m_rows)[static_cast<std::size_t>(m_row)];
    p.setFont(fontOf(FontRole::Strong));
    p.setPen(theme.text);
    p.drawText(QRectF(rect.left() + 8, rect.top() + 4, rect.width() - 16, 18), Qt::AlignLeft | Qt::AlignVCenter,
               u"Memory of the fullest rank: %1"_s.arg(scheduleTitle(of.schedule)));
    const QRectF area = rect.adjusted(64, 28, -150, -24);
    const double capacity = m_question.capacity();
    double most = 0;
    for (const StateCell& cell : of.cells) most = std::max(most, static_cast<double>(cell.peak()));
    const bool named = capacity > mostAbove * most; // too far above the bars to be drawn
    if (!named) most = std::max(most, capacity);
    if (most <= 0 || area.height() < 20) return;
    most *= 1.08;
    const auto y = [&](double bytes) { return area.bottom() - bytes / most * area.height(); };
    p.setFont(fontOf(FontRole::Small));
    const QFontMetricsF metrics(p.font());
    const double slot = area.width() / levels, width = std::min(92.0, slot * 0.62);
    std::array<bool, memoryCategoryCount> present{};
    for (int level = 0; level < levels; ++level) {
        const StateCell& cell = of.cells[static_cast<std::size_t>(level)];
        const QRectF column(area.left() + level * slot + (slot - width) / 2, area.top(), width, area.height());
        p.setPen(theme.secondary);
        p.drawText(QRectF(area.left() + level * slot, area.bottom() + 4, slot, 16), Qt::AlignCenter,
                   zeroTitleIn(slot - 4, level, metrics));
        if (!cell.good()) {
            p.drawText(column, Qt::AlignHCenter | Qt::AlignBottom, cell.done ? u"none"_s : u"…"_s);
            continue;
        }
        double below = 0;
        for (const MemoryCategory category : stackedCategories) {
            const auto bytes = static_cast<double>(cell.held[static_cast<std::size_t>(category)]);
            if (bytes <= 0) continue;
            present[static_cast<std::size_t>(category)] = true;
            const QRectF part(column.left(), y(below + bytes), width, std::max(0.5, y(below) - y(below + bytes)));
            p.fillRect(part, colourOf(category, theme));
            p.fillRect(QRectF(part.left(), part.top(), part.width(), 1), theme.canvas);
            if (part.height() >= 15 && part.width() >= 60) {
                p.setPen(theme.text);
                p.drawText(part, Qt::AlignCenter, bytesText(static_cast<Bytes>(bytes)));
            }
            below += bytes;
        }
        const QRectF whole(column.left(), y(below), width, area.bottom() - y(below));
        if (over(cell))
            drawHatch(p, QRectF(whole.left(), whole.top(), whole.width(), std::max(0.0, y(capacity) - whole.top())),
                      theme.critical);
        p.setPen(theme.text);
        p.drawText(QRectF(column.left() - 30, whole.top() - 16, width + 60, 15), Qt::AlignCenter,
                   bytesText(cell.peak()));
        if (level == m_level) {
            p.setPen(QPen(theme.accent, 1.5));
            p.setBrush(Qt::NoBrush);
            p.drawRect(whole.adjusted(-2, -1, 2, 1));
        }
    }
    p.setPen(QPen(theme.separator, 1));
    p.drawLine(area.bottomLeft(), area.bottomRight());
    if (capacity > 0 && named) {
        p.setPen(theme.critical);
        p.drawText(QRectF(area.right() + 12, area.bottom() - 15, rect.right() - area.right() - 14, 15),
                   Qt::AlignLeft | Qt::AlignVCenter, u"a rank has %1"_s.arg(bytesText(static_cast<Bytes>(capacity))));
    } else if (capacity > 0) {
        p.setPen(QPen(theme.critical, 1.2, Qt::DashLine));
        p.drawLine(QPointF(area.left(), y(capacity)), QPointF(area.right(), y(capacity)));
        p.setPen(theme.critical);
        p.drawText(QRectF(rect.left(), y(capacity) - 8, area.left() - rect.left() - 5, 16),
                   Qt::AlignRight | Qt::AlignVCenter, bytesText(static_cast<Bytes>(capacity)));
    }
    double at = area.top();
    for (auto category = stackedCategories.rbegin(); category != stackedCategories.rend(); ++category) {
        if (!present[static_cast<std::size_t>(*category)]) continue;
        p.fillRect(QRectF(area.right() + 12, at + 2, 11, 11), colourOf(*category, theme));
        p.setPen(theme.text);
        p.drawText(QRectF(area.right() + 28, at, rect.right() - area.right() - 30, 15),
                   Qt::AlignLeft | Qt::AlignVCenter, titleOf(*category));
        at += 17;
    }
}

void StatePicture::paintGrid(QPainter& p, const QRectF& rect, const Theme& theme) const
{
    const QRectF grid = gridIn(rect);
    double least = 1e300, most = 0;
    for (const StateRow& row : *m_rows)
        for (const StateCell& cell : row.cells)
            if (cell.good() && !over(cell)) {
                least = std::min(least, static_cast<double>(cell.step));
                most = std::max(most, static_cast<double>(cell.step));
            }
    p.setFont(fontOf(FontRole::Small));
    const QFontMetricsF metrics(p.font());
    p.setPen(theme.secondary);
    p.drawText(QRectF(grid.left(), grid.top(), nameWidth, headHeight), Qt::AlignLeft | Qt::AlignVCenter,
               u"Step time · memory"_s);
    const double width = (grid.width() - nameWidth) / levels;
    for (int level = 0; level < levels; ++level)
        p.drawText(QRectF(grid.left() + nameWidth + level * width, grid.top(), width, headHeight), Qt::AlignCenter,
                   zeroTitleIn(width - 4, level, metrics));
    const int last = std::min(static_cast<int>(m_rows->size()), m_first + rowsIn(grid));
    for (int row = m_first; row < last; ++row) {
        const StateRow& of = (*m_rows)[static_cast<std::size_t>(row)];
        const double top = cellIn(rect, row, 0).top();
        p.setPen(row == m_row ? theme.text : theme.secondary);
        p.drawText(QRectF(grid.left(), top, nameWidth - 6, rowHeight), Qt::AlignLeft | Qt::AlignVCenter,
                   metrics.elidedText(scheduleTitle(of.schedule), Qt::ElideRight, nameWidth - 8));
        for (int level = 0; level < levels; ++level) {
            const StateCell& cell = of.cells[static_cast<std::size_t>(level)];
            const QRectF place = cellIn(rect, row, level).adjusted(0.5, 0.5, -0.5, -0.5);
            const bool fits = cell.good() && !over(cell);
            const double share = !fits          ? 0
                                 : most > least ? 0.08 + 0.5 * (static_cast<double>(cell.step) - least) / (most - least)
                                                : 0.2;
            p.fillRect(place, fits ? mixed(theme.canvas, theme.accent, static_cast<float>(share)) : theme.bubbleFill);
            if (cell.good() && !fits) drawHatch(p, place, theme.bubbleHatch);
            QString text = !cell.done     ? u"…"_s
                           : !cell.good() ? u"–"_s
                                          : u"%1 · %2"_s.arg(durationText(cell.step), bytesText(cell.peak()));
            if (metrics.horizontalAdvance(text) + 4 > place.width())
                text = cell.good() ? durationText(cell.step) : text;
            if (cell.good() && !fits) { // readable over the hatch
                const double wide = metrics.horizontalAdvance(text) + 8;
                p.fillRect(QRectF(place.center().x() - wide / 2, place.top() + 2, wide, place.height() - 4),
                           theme.bubbleFill);
            }
            p.setPen(fits ? theme.text : theme.secondary);
            p.drawText(place, Qt::AlignCenter, text);
            if (row == m_row && level == m_level) {
                p.setPen(QPen(theme.accent, 2));
                p.setBrush(Qt::NoBrush);
                p.drawRect(place.adjusted(1, 1, -1, -1));
            }
        }
    }
    if (last < static_cast<int>(m_rows->size()) || m_first > 0) {
        p.setPen(theme.faint);
        p.drawText(QRectF(grid.left(), grid.bottom() - footHeight + 2, grid.width(), footHeight),
                   Qt::AlignRight | Qt::AlignVCenter,
                   u"%1 to %2 of %3"_s.arg(m_first + 1).arg(last).arg(m_rows->size()));
    }
}

void StatePicture::paintTo(QPainter& p, const QRectF& rect, const Theme& theme) const
{
    p.setRenderHint(QPainter::Antialiasing, false);
    if (!m_rows || m_rows->empty()) {
        p.setFont(fontOf(FontRole::Small));
        p.setPen(theme.secondary);
        p.drawText(rect, Qt::AlignCenter, u"simulating…"_s);
        return;
    }
    paintBars(p, QRectF(rect.left(), rect.top(), rect.width(), gridIn(rect).top() - rect.top() - 6), theme);
    paintGrid(p, rect, theme);
}

void StatePicture::paintEvent(QPaintEvent*)
{
    QPainter p(this);
    p.fillRect(rect(), m_theme->canvas);
    paintTo(p, rect(), *m_theme);
    paintFocus(p);
}

void StatePicture::mousePressEvent(QMouseEvent* event)
{
    if (const auto [row, level] = cellAt(event->position()); row >= 0) choose(row, level);
}

void StatePicture::mouseDoubleClickEvent(QMouseEvent* event)
{
    if (const auto [row, level] = cellAt(event->position()); row >= 0)
        emit activated(QString::fromStdString((*m_rows)[static_cast<std::size_t>(row)].schedule));
}

void StatePicture::wheelEvent(QWheelEvent* event)
{
    const int count = m_rows ? static_cast<int>(m_rows->size()) : 0;
    const int lines = event->angleDelta().y() > 0 ? -2 : 2;
    m_first = std::clamp(m_first + lines, 0, std::max(0, count - rowsIn(gridIn(rect()))));
    update();
    event->accept();
}

void StatePicture::keyPressEvent(QKeyEvent* event)
{
    switch (event->key()) {
    case Qt::Key_Left: return choose(m_row, m_level - 1);
    case Qt::Key_Right: return choose(m_row, m_level + 1);
    case Qt::Key_Up: return choose(m_row - 1, m_level);
    case Qt::Key_Down: return choose(m_row + 1, m_level);
    case Qt::Key_Return:
    case Qt::Key_Enter:
        if (m_rows && !m_rows->empty())
            emit activated(QString::fromStdString((*m_rows)[static_cast<std::size_t>(m_row)].schedule));
        return;
    default: QWidget::keyPressEvent(event);
    }
}

bool StatePicture::event(QEvent* event)
{
    if (event->type() == QEvent::ShortcutOverride) {
        const int key = static_cast<QKeyEvent*>(event)->key();
        if (isPlotKey(key)) {
            event->accept();
            return true;
        }
    }
    if (event->type() == QEvent::ToolTip) {
        auto* help = static_cast<QHelpEvent*>(event);
        const auto [row, level] = cellAt(help->pos());
        QToolTip::showText(help->globalPos(), row < 0 ? QString() : textOf(row, level), this);
        return true;
    }
    return QWidget::event(event);
}

} // namespace stagewright
