// EditCommands: what the menus do with the selected ops in edit mode, each one undoable step with a name. GUI thread
// only.
#pragma once

#include <QObject>

#include "app/ui/edit/edit_drag.h"
#include "schedules/edit/edit_pattern.h"

namespace stagewright {

class EditPanel;

class EditCommands : public QObject {
    Q_OBJECT
public:
    EditCommands(Workspace& workspace, ScheduleEditor* editor, EditSelection* selection, EditDrag* drag,
                 EditPanel* panel);         // the drag's child
    void refresh();                         // the actions, of what is selected and in the order
    void place(const std::vector<Op>& ops); // out of the tray
    void placeAll();
    bool changeMicrobatches(int count);

private:
    const std::vector<OpPosition>& chosen() const { return m_selection->ops(); }
    void copy(bool cut);
    void paste();
    void remove();
    void insertDelay();
    void fill();
    void snap(bool all);
    void toRank(int by);
    void extend(int by);
    void askMicrobatches();

    Workspace& m_workspace;
    ScheduleEditor* m_editor;
    EditSelection* m_selection;
    EditDrag* m_drag;
    OpPattern m_pattern;
    int m_copies = 0; // copies of the pattern pasted so far
};

} // namespace stagewright
