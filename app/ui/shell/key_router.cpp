#include "app/ui/shell/key_router.h"

#include <QAbstractItemView>
#include <QAbstractSpinBox>
#include <QApplication>
#include <QComboBox>
#include <QKeyEvent>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTextEdit>
#include <QToolButton>

#include "app/ui/workspace/workspace.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {
namespace {

// A key that would start a keyboard search: one printable character, without Ctrl, Alt or Meta.
bool isCharacter(const QKeyEvent& key)
{
    if ((key.modifiers() & (Qt::ControlModifier | Qt::AltModifier | Qt::MetaModifier)) != 0) return false;
    return !key.text().isEmpty() && key.text().front().isPrint() && !key.text().front().isSpace();
}

bool isPressed(const QKeyEvent& key)
{
    return (key.key() == Qt::Key_Return || key.key() == Qt::Key_Enter) && (key.modifiers() & ~Qt::KeypadModifier) == 0;
}

} // namespace

bool isTypedInto(const QWidget* widget)
{
    if (const auto* line = qobject_cast<const QLineEdit*>(widget)) return !line->isReadOnly();
    if (const auto* text = qobject_cast<const QPlainTextEdit*>(widget)) return !text->isReadOnly();
    if (const auto* text = qobject_cast<const QTextEdit*>(widget)) return !text->isReadOnly();
    if (const auto* box = qobject_cast<const QComboBox*>(widget)) return box->isEditable();
    return qobject_cast<const QAbstractSpinBox*>(widget) != nullptr;
}

KeyRouter::KeyRouter(Workspace& workspace) : QObject(&workspace), m_workspace(workspace)
{
    qApp->installEventFilter(this);
    // A button that disappears with what it was about leaves the focus to whatever comes next: the timeline, not a text
    // field.
    connect(qApp, &QApplication::focusChanged, this, [this](const QWidget* old, const QWidget* now) {
        TimelineView* view = m_workspace.views().timeline;
        if (old == nullptr || now == nullptr || old->isVisible() || isTypedInto(old) || !isTypedInto(now)) return;
        if (view->isVisible() && now->window() == view->window() && old->window() == view->window()) view->setFocus();
    });
}

bool KeyRouter::isForTimeline(const QWidget* focus, const QKeyEvent& key) const
{
    TimelineView* view = m_workspace.views().timeline;
    if (focus == view || !view->isVisible() || !isCharacter(key)) return false;
    return actionOf(view->input().keyMap(), key).has_value();
}

bool KeyRouter::press(QWidget* focus, const QKeyEvent& key)
{
    if (isPressed(key)) {
        auto* button = qobject_cast<QAbstractButton*>(focus);
        if (button == nullptr || !button->isEnabled() ||
            !(qobject_cast<QPushButton*>(focus) || qobject_cast<QToolButton*>(focus)))
            return false;
        if (key.isAutoRepeat()) return true;
        if (auto* tool = qobject_cast<QToolButton*>(button); tool != nullptr && tool->menu() != nullptr)
            tool->showMenu();
        else
            button->click();
        return true;
    }
    if (isForTimeline(focus, key)) {
        QKeyEvent copy(key.type(), key.key(), key.modifiers(), key.text(), key.isAutoRepeat());
        m_sending = true; // an ignored key is not sent around again
        QCoreApplication::sendEvent(m_workspace.views().timeline, &copy);
        m_sending = false;
        return true;
    }
    const bool searches =
        qobject_cast<QAbstractItemView*>(focus) != nullptr || qobject_cast<QComboBox*>(focus) != nullptr;
    return searches && isCharacter(key) && m_workspace.views().timeline->isVisible();
}

bool KeyRouter::eventFilter(QObject* watched, QEvent* event)
{
    if (event->type() != QEvent::KeyPress && event->type() != QEvent::ShortcutOverride) return false;
    if (m_sending || !watched->isWidgetType()) return false;
    auto* focus = static_cast<QWidget*>(watched);
    if (focus->window() != m_workspace.window() || isTypedInto(focus)) return false;
    if (const auto* proxy = focus->focusProxy(); proxy != nullptr && isTypedInto(proxy)) return false;
    const auto& key = *static_cast<QKeyEvent*>(event);
    if (event->type() == QEvent::KeyPress) return press(focus, key);
    if (!isForTimeline(focus, key)) return false;
    event->accept(); // no action's shortcut: the key comes to press()
    return true;
}

} // namespace stagewright
