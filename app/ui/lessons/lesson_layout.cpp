#include "app/ui/lessons/lesson_layout.h"

#include <QDockWidget>
#include <QToolBar>

#include "app/ui/workspace/workspace.h"
#include "widgets/literals.h"

namespace stagewright {

void LessonLayout::set(ActionId id, bool on)
{
    QAction* action = m_workspace.actions()[id];
    if (action->isChecked() == on) return;
    const bool enabled = action->isEnabled();
    action->setEnabled(true); // also while nothing is open
    action->trigger();
    action->setEnabled(enabled);
}

void LessonLayout::show(const Uses& uses)
{
    if (!m_active) {
        m_active = true;
        for (const ActionId id : {"runsList", "memory", "scheduleText"})
            m_switches[id] = m_workspace.actions()[id]->isChecked();
        const auto putAway = [this](QWidget* widget) {
            if (widget->isHidden()) return;
            widget->hide();
            m_away.emplace_back(widget);
        };
        for (QToolBar* bar : m_workspace.window()->findChildren<QToolBar*>()) putAway(bar);
        for (QDockWidget* dock : m_workspace.window()->findChildren<QDockWidget*>())
            if (dock->objectName() != "glossary"_L1) putAway(dock);
        set("runsList", false);
    }
    set("memory", uses.memory);
    set("scheduleText", uses.text);
}

void LessonLayout::restore()
{
    if (!m_active) return;
    m_active = false;
    for (const auto& [id, on] : m_switches) set(id, on);
    for (const QPointer<QWidget>& widget : m_away)
        if (widget) widget->show();
    m_away.clear();
}

} // namespace stagewright
