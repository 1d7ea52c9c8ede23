#include "widgets/explore/cursor_picture.h"

#include <algorithm>

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>

namespace stagewright {

CursorPicture::CursorPicture(QWidget* parent) : ThemedWidget(parent)
{
    setFocusPolicy(Qt::StrongFocus);
    makeCopyable(this, [this] { return table(); });
}

void CursorPicture::choose(int mark)
{
    m_cursor = std::clamp(mark, 0, std::max(0, marks() - 1));
    changed();
    emit chosen();
}

void CursorPicture::changed()
{
    m_cursor = std::clamp(m_cursor, 0, std::max(0, marks() - 1));
    setAccessibleDescription(marks() > 0 ? textOf(m_cursor) : QString());
    update();
}

int CursorPicture::markAt(QPointF point) const
{
    for (int mark = 0; mark < marks(); ++mark)
        if (markRect(mark).contains(point)) return mark;
    return -1;
}

void CursorPicture::paintEvent(QPaintEvent*)
{
    QPainter p(this);
    p.fillRect(rect(), m_theme->canvas);
    paintTo(p, rect(), *m_theme);
    paintFocus(p);
}

void CursorPicture::mousePressEvent(QMouseEvent* event)
{
    if (const int mark = markAt(event->position()); mark >= 0) choose(mark);
}

void CursorPicture::keyPressEvent(QKeyEvent* event)
{
    switch (event->key()) {
    case Qt::Key_Left: return choose(m_cursor - 1);
    case Qt::Key_Right: return choose(m_cursor + 1);
    case Qt::Key_Home: return choose(0);
    case Qt::Key_End: return choose(marks() - 1);
    default: QWidget::keyPressEvent(event);
    }
}

bool CursorPicture::event(QEvent* event)
{
    if (event->type() == QEvent::ShortcutOverride) {
        const int key = static_cast<QKeyEvent*>(event)->key();
        if (key == Qt::Key_Left || key == Qt::Key_Right || key == Qt::Key_Home || key == Qt::Key_End) {
            event->accept();
            return true;
        }
    }
    if (event->type() == QEvent::ToolTip) {
        auto* help = static_cast<QHelpEvent*>(event);
        const int mark = markAt(help->pos());
        QToolTip::showText(help->globalPos(), mark < 0 ? QString() : textOf(mark), this);
        return true;
    }
    return QWidget::event(event);
}

} // namespace stagewright
