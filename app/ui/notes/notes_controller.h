// NotesController: notes on the runs of one window: adding, saving, editing, removing, undo; flags on the timeline, the
// dock with the list, and the run file behind them. Notes on in-memory runs are kept here until the runs are saved.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <QObject>
#include <QPointer>
#include <QThreadPool>
#include <QUndoStack>

#include "app/ui/workspace/feature.h"
#include "app/ui/workspace/offers.h"
#include "traces/run/notes.h"
#include "widgets/runs/runs_model.h"

class QDockWidget;
class QLineEdit;

namespace stagewright {

class NotesOverlay;
class NotesPanel;

class NotesController : public Feature, public NoteKeeping {
    Q_OBJECT
public:
    explicit NotesController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();
    static std::vector<ShowEntry> showTable();
    FeatureParts parts() override;
    ~NotesController() override; // waits for running writes

    void mark();   // a temporary note on the selection; its text is typed beside it
    void keep();   // stores the temporary note, or one on the selection; its text is edited in the list
    void remove(); // the selected note, else the temporary one, else that of the selected op
    const std::vector<Note>& notes(const RunRef& ref) const override;
    const std::optional<Note>& passing() const { return m_passing; }
    void addNote(const RunRef& ref, Note note) override;
    void changeText(const RunRef& ref, std::int64_t id, const QString& text);
    void forget(const RunRef& ref) override;
    QUndoStack* undoStack() { return &m_undo; }
    NotesPanel* panel() { return m_panel; }
    QDockWidget* dock() { return m_dock; }
    QLineEdit* field() { return m_field; } // where the text is typed; null: not open
    bool settled() const override { return m_reading == 0 && m_writing == 0; }

    void refresh(); // flags and list, of the pictures shown now
    NotesOverlay* flags() { return m_flags; }

private:
    class Change;
    using Notes = std::vector<Note>;
    std::optional<Note> noteOfSelection() const; // temporary or to be stored; with a suggested text
    void apply(const RunRef& ref, const Notes& own);
    Notes own(const RunRef& ref) const;
    void change(const RunRef& ref, const QString& words, Notes after);
    void load(const RunRef& ref);
    void shownChanged();
    void choose(int row, bool show);
    RunRef refOfPanel(int panel) const;
    void askText();
    void answered(bool kept); // closes the field; its text becomes the temporary note's, or the note is dropped
    bool eventFilter(QObject* watched, QEvent* event) override;

    NotesOverlay* m_flags;
    NotesPanel* m_panel;
    QDockWidget* m_dock;
    QUndoStack m_undo;
    QThreadPool m_pool; // one thread: writes keep their order
    std::vector<std::pair<RunRef, Notes>> m_known;
    std::optional<Note> m_passing;
    int m_passingPanel = 0;
    QPointer<QLineEdit> m_field;
    int m_chosen = -1; // row of the list
    int m_reading = 0;
    int m_writing = 0;
};

} // namespace stagewright
