// EditPanel: the figures of the edited order, against the original and a library schedule; whether it is valid and why
// not; its recognised name; each rank; and commands for the selected ops. Figures follow a drag.
#pragma once

#include <optional>

#include <QTimer>

#include "traces/compare/step_noise.h"
#include "widgets/edit/schedule_editor.h"
#include "widgets/panel/section_column.h"

class QComboBox;
class QPushButton;
class QAction;

namespace stagewright {

class EditPanel : public SectionColumn {
    Q_OBJECT
public:
    // What the order is compared with beside the original.
    struct Reference {
        QString name; // as the library has it; empty: none
        QString title;
        QString fault; // why it can't be made for this shape; empty: figures are there
        EditFigures figures;
    };

    explicit EditPanel(ScheduleEditor* editor, QWidget* parent = nullptr); // editor must outlive the panel
    // What is edited, where its costs come from, and the times of its steps: a change of time within their noise has no
    // colour.
    void setSource(const QString& name, const QString& costs, const StepSample& steps);
    // the source of I and W; shown once the order has any. Empty: they were measured
    void setSplitNote(const QString& text);
    void setChosen(const std::vector<OpPosition>& positions); // the first is the selected op
    void setCanRun(bool can, const QString& whyNot);
    void setRecognised(const QString& text, const QString& tooltip); // empty: search in progress
    void setReference(const Reference& reference);
    void setOpActions(const QList<QAction*>& actions); // buttons of the section on the chosen ops, two in a row
    QString recognised() const { return m_recognised; }

signals:
    void runAsked();
    void doneAsked();
    void deadlockAsked();                      // why the order hangs
    void referenceChosen(const QString& name); // a library schedule; empty: none

private:
    void refresh();
    void refreshFigures();

    ScheduleEditor* m_editor;
    std::vector<OpPosition> m_chosen;
    bool m_canRun = true;
    QString m_whyNot;
    QString m_splitNote;
    QString m_source, m_costs, m_recognised, m_recognisedTip;
    StepSample m_steps;
    Reference m_against;
    PanelSection *m_state, *m_figures, *m_ranks, *m_op;
    QPushButton *m_run, *m_undo, *m_redo, *m_revert, *m_done, *m_deadlock;
    QComboBox* m_reference;
    QWidget* m_opButtons;
    QTimer m_soon; // figures of a preview, at most every 60 ms
};

} // namespace stagewright
