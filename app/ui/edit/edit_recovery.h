// EditRecovery: what is being edited stays on disk until it is saved, and is offered after a crash. GUI thread only.
#pragma once

#include <optional>

#include "app/ui/edit/edit_autosave.h"

namespace stagewright {

class EditController;
class RecoveryBar;
class ScheduleEditor;
class Workspace;
struct RunView;

class EditRecovery : public QObject {
    Q_OBJECT
public:
    EditRecovery(Workspace& workspace, EditController& edits); // its child
    void keep(const std::shared_ptr<const RunView>& source);   // soon, as it is then: an edit of this run; null: none
    void clear() { m_autosave->clear(); }
    void flush() { m_autosave->flush(); }
    bool offers() const { return m_orphan.has_value(); } // an edit from an earlier window
    void offer();
    EditAutosave* autosave() { return m_autosave; }
    RecoveryBar* bar() { return m_bar; }

signals:
    void preferencesChanged(); // it may be kept now

private:
    void recover();

    Workspace& m_workspace;
    EditController& m_edits;
    ScheduleEditor* m_editor;
    EditAutosave* m_autosave;
    RecoveryBar* m_bar = nullptr;
    std::optional<EditAutosave::Orphan> m_orphan;
};

} // namespace stagewright
