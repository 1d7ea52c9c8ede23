#include "widgets/deadlock/deadlock_view.h"

#include <algorithm>

#include <QFontMetricsF>
#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>

#include "schedules/base/op_number.h"
#include "schedules/execute/deadlock_text.h"
#include "schedules/model/kinds.h"
#include "widgets/literals.h"
#include "widgets/timeline/arrows.h"
#include "widgets/timeline/slice_shapes.h"

namespace stagewright {
namespace {

constexpr double left = 92, top = 34, rowHeight = 36, rowGap = 26;
constexpr int before = 7, after = 9; // ops around where a rank has stopped

} // namespace

DeadlockView::DeadlockView(QWidget* parent) : ThemedWidget(parent)
{
    loadFonts();
    setObjectName(u"deadlockView"_s);
    setAccessibleName(u"Cycle of waits"_s);
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
}

void DeadlockView::setDeadlock(std::shared_ptr<const Schedule> schedule, const Deadlock& deadlock)
{
    m_schedule = std::move(schedule);
    m_deadlock = deadlock;
    setAccessibleDescription(QString::fromStdString(describeDeadlock(deadlock)));
    const QFontMetricsF metrics(fontOf(FontRole::Label));
    m_cell = 34;
    if (m_schedule)
        for (const auto& list : m_schedule->order)
            for (std::size_t i = 0; i < std::min<std::size_t>(list.size(), 4096); ++i)
                m_cell = std::max(m_cell, metrics.horizontalAdvance(textOf(list[i])) + 12);
    updateGeometry();
    update();
}

QString DeadlockView::textOf(const Op& op) const
{
    const bool sends = isSend(op.kind);
    const bool receives = isReceive(op.kind);
    if (!sends && !receives) return QString::fromStdString(toText(op));
    const QChar letter = carriesActivation(op.kind) ? u'F' : u'B';
    return QString(QChar(sends ? 0x2192 : 0x2190)) + letter + QString::number(op.microbatch);
}

int DeadlockView::standsAt(int rank) const
{
    for (const BlockedRank& blocked : m_deadlock.blocked)
        if (blocked.rank == rank) return blocked.position;
    return -1;
}

bool DeadlockView::isVictim(int rank) const
{
    return std::find(m_deadlock.victims.begin(), m_deadlock.victims.end(), rank) != m_deadlock.victims.end();
}

int DeadlockView::first(int rank) const
{
    const int at = standsAt(rank);
    const int size = static_cast<int>(m_schedule->order[static_cast<std::size_t>(rank)].size());
    return std::max(0, (at < 0 ? size : at) - before);
}

int DeadlockView::columns() const
{
    int most = 1;
    if (!m_schedule) return most;
    for (int r = 0; r < m_schedule->ranks; ++r) {
        const int size = static_cast<int>(m_schedule->order[static_cast<std::size_t>(r)].size());
        int last = std::min(size, first(r) + before + after);
        for (const BlockedRank& wait : m_deadlock.blocked) // far ops that are waited for are drawn too
            if (wait.onRank == r && wait.onPosition >= 0)
                last = std::max(last, std::min(size, std::min(wait.onPosition + 2, first(r) + 60)));
        most = std::max(most, last - first(r));
    }
    return most;
}

QRectF DeadlockView::cellOf(int rank, int position) const
{
    if (!m_schedule || rank < 0 || rank >= m_schedule->ranks) return {};
    const int column = position - first(rank);
    if (position < 0 || column < 0 || column >= columns() ||
        position >= static_cast<int>(m_schedule->order[static_cast<std::size_t>(rank)].size()))
        return {};
    return {left + column * (m_cell + 3), top + rank * (rowHeight + rowGap), m_cell, rowHeight};
}

QSize DeadlockView::sizeHint() const
{
    const int ranks = m_schedule ? m_schedule->ranks : 4;
    return {static_cast<int>(left + columns() * (m_cell + 3) + 24),
            static_cast<int>(top + ranks * (rowHeight + rowGap))};
}

void DeadlockView::paintWait(QPainter& p, const BlockedRank& wait) const
{
    const QRectF from = cellOf(wait.rank, wait.position);
    const QRectF to = cellOf(wait.onRank, wait.onPosition);
    if (from.isEmpty() || to.isEmpty()) return;
    const QColor colour = isVictim(wait.rank) ? m_theme->faint : m_theme->critical;
    // From row to row through the gaps between them: leaves at the bottom or top, arrives from the same side.
    const bool down = to.top() >= from.top();
    const QPointF start(from.center().x(), down ? from.bottom() : from.top());
    const QPointF tip(to.center().x(), wait.onRank == wait.rank ? to.bottom() : down ? to.top() : to.bottom());
    const double bend = rowGap * 0.9;
    QPainterPath path(start);
    const double way = down ? 1 : -1;
    const double arrive = wait.onRank == wait.rank ? 1 : -way;
    path.cubicTo(start + QPointF(0, way * bend), tip + QPointF(0, arrive * (bend + 7)), tip + QPointF(0, arrive * 7));
    paintArrow(p, path, tip, {0, -arrive}, colour, m_theme->canvas);
}

void DeadlockView::paintEvent(QPaintEvent*)
{
    QPainter p(this);
    const Theme& t = *m_theme;
    p.fillRect(rect(), t.canvas);
    if (!m_schedule) return;
    p.setRenderHint(QPainter::Antialiasing);
    for (int r = 0; r < m_schedule->ranks; ++r) {
        const auto& list = m_schedule->order[static_cast<std::size_t>(r)];
        const double y = top + r * (rowHeight + rowGap);
        const int at = standsAt(r);
        p.setFont(fontOf(FontRole::Rank));
        p.setPen(isVictim(r) ? t.faint : t.text);
        p.drawText(QRectF(14, y, left - 20, rowHeight / 2 + 2), Qt::AlignLeft | Qt::AlignVCenter, u"Rank %1"_s.arg(r));
        p.setFont(fontOf(FontRole::Small));
        p.setPen(t.secondary);
        p.drawText(QRectF(14, y + rowHeight / 2, left - 20, rowHeight / 2), Qt::AlignLeft | Qt::AlignVCenter,
                   at < 0        ? u"finished"_s
                   : isVictim(r) ? u"waits for it"_s
                                 : u"op %1"_s.arg(opNumber(at)));
        const int last = std::min(static_cast<int>(list.size()), first(r) + columns());
        p.setFont(fontOf(FontRole::Label));
        for (int i = first(r); i < last; ++i) {
            const Op& op = list[static_cast<std::size_t>(i)];
            const QRectF cell = cellOf(r, i);
            const Fill& fill = t.of(op.kind);
            const bool stands = i == at;
            p.setOpacity(stands || at < 0 ? 1 : i < at ? 0.5 : 0.3);
            if (stands && isVictim(r)) {
                p.setPen(Qt::NoPen);
                p.setBrush(t.track);
                p.drawRoundedRect(cell, 3, 3);
            } else {
                paintSliceShape(p, cell, fill);
            }
            p.setOpacity(1);
            p.setPen(stands && !isVictim(r) ? fill.label : i < at || at < 0 ? fill.label : t.secondary);
            p.drawText(cell, Qt::AlignCenter, textOf(op));
        }
        if (first(r) > 0) {
            p.setPen(t.faint);
            p.drawText(QRectF(left - 16, y, 14, rowHeight), Qt::AlignCenter, u"…"_s);
        }
    }
    // Dashed: what a rank waits for; solid: where it has stopped; victims in grey below the cycle.
    for (const bool victims : {true, false})
        for (const BlockedRank& wait : m_deadlock.blocked) {
            if (isVictim(wait.rank) != victims) continue;
            const QColor colour = victims ? t.faint : t.critical;
            const QRectF from = cellOf(wait.rank, wait.position), to = cellOf(wait.onRank, wait.onPosition);
            p.setBrush(Qt::NoBrush);
            if (!to.isEmpty()) {
                p.setPen(QPen(colour, 2, Qt::DashLine));
                p.drawRoundedRect(to.adjusted(-1.5, -1.5, 1.5, 1.5), 4, 4);
            }
            if (!from.isEmpty()) {
                p.setPen(QPen(colour, 2.5));
                p.drawRoundedRect(from.adjusted(-1.5, -1.5, 1.5, 1.5), 4, 4);
            }
            paintWait(p, wait);
        }
}

bool DeadlockView::event(QEvent* event)
{
    if (event->type() == QEvent::ToolTip && m_schedule) {
        const auto* help = static_cast<QHelpEvent*>(event);
        for (int r = 0; r < m_schedule->ranks; ++r)
            for (int i = first(r); i < first(r) + columns(); ++i) {
                if (!cellOf(r, i).contains(help->pos())) continue;
                QString text = u"%1: op %2 of rank %3"_s
                                   .arg(QString::fromStdString(toText(
                                       m_schedule->order[static_cast<std::size_t>(r)][static_cast<std::size_t>(i)])))
                                   .arg(opNumber(i))
                                   .arg(r);
                for (const BlockedRank& wait : m_deadlock.blocked)
                    if (wait.rank == r && wait.position == i) text += u'\n' + QString::fromStdString(wait.sentence);
                QToolTip::showText(help->globalPos(), text, this);
                return true;
            }
        QToolTip::hideText();
        return true;
    }
    return QWidget::event(event);
}

} // namespace stagewright
