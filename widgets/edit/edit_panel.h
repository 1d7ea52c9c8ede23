// EditPanel: what the edited order comes to against the original, whether it is valid and why not, and what one can do.
#pragma once

#include "widgets/edit/schedule_editor.h"
#include "widgets/panel/side_panel.h"

class QLineEdit;
class QPushButton;

namespace stagewright {

class EditPanel : public SectionColumn {
    Q_OBJECT
public:
    explicit EditPanel(ScheduleEditor* editor, QWidget* parent = nullptr); // editor must outlive the panel
    void setSource(const QString& name, const QString& costs); // what is edited, and where its costs come from
    void setSelected(OpPosition position);                     // enables the buttons that act on an op
    void setCanRun(bool can, const QString& whyNot);

signals:
    void runAsked();
    void doneAsked();
    void delayAsked(); // before the selected op
    void deadlockAsked(); // why the order never ends

private:
    void refresh();

    ScheduleEditor* m_editor;
    OpPosition m_selected;
    bool m_canRun = true;
    QString m_whyNot;
    QString m_source, m_costs;
    PanelSection *m_state, *m_figures, *m_op, *m_text;
    QPushButton *m_run, *m_undo, *m_redo, *m_revert, *m_done, *m_left, *m_right, *m_delay, *m_removeDelay, *m_deadlock;
};

} // namespace stagewright
