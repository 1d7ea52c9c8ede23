// EditController: edit mode. It connects the ScheduleEditor with the views: selecting and dragging ops, commands on
// them, the text and the tray under the canvas, the reference schedule, and the autosave. Sources: edit_entry.cpp
// (entering, leaving), edit_controller.cpp (layout, selection, pictures), edit_drag.cpp, edit_commands.cpp,
// edit_reference.cpp (recognition, library, ghosts, autosave). GUI thread only.
#pragma once

#include <memory>
#include <optional>

#include <QObject>
#include <QTimer>

#include "app/costs/split_sources.h"
#include "app/ui/edit/edit_autosave.h"
#include "app/ui/workspace/actions.h"
#include "app/ui/workspace/feature.h"
#include "app/ui/workspace/offers.h"
#include "schedules/edit/edit_pattern.h"
#include "schedules/edit/edit_timing.h"
#include "widgets/edit/edit_overlay.h"
#include "widgets/edit/edit_panel.h"
#include "widgets/edit/schedule_editor.h"

class QSplitter;

namespace stagewright {

class MoveHint;
class OpTray;
class RecoveryBar;
class ScheduleText;
struct RunView;

class EditController : public Feature, public OrderEditing {
    Q_OBJECT
public:
    explicit EditController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();
    static std::vector<ShowEntry> showTable();
    ~EditController() override;
    FeatureParts parts() override;

    ScheduleEditor& editor() override { return *m_editor; }
    const std::shared_ptr<const RunView>& source() const override { return m_source; }
    EditPanel* panel() { return m_panel; }
    void enterEdit() override;
    void leaveEdit() override;
    // Shows an in-memory run and edits it, with `order` as a change of this name; without a name the edit starts from
    // `order`.
    void editRun(Run run, const QString& change, Schedule order);
    // Edits a run that may not be open yet, with `order` as a change of this name, if its order is `original`; else
    // done(false) and nothing has changed.
    void editRunAgain(const RunRef& ref, const Schedule& original, const QString& change, const Schedule& order,
                      const std::function<void(bool)>& done);
    void saved() override;
    void recorded(const Schedule& order) override;   // it may be another than the one edited now
    void closing() override { m_autosave->flush(); } // what is being edited stays on disk, for the next start
    bool escape() override;
    void redraw() override;
    void setTray(bool shown, bool placesAll) override;
    void setKeptElsewhere(bool kept) override { m_keptElsewhere = kept; }
    void setMoves(bool on) override { m_overlay->setMoves(on); }
    bool moves() const override { return m_overlay->moves(); }
    bool settled() const override;

    const std::vector<OpPosition>& chosen() const { return m_chosen; } // the selected op first
    void choose(std::vector<OpPosition> positions);
    void chooseGap(const RowGap& gap);
    const RowGap& gap() const { return m_gap; }
    ScheduleText* text() { return m_text; }
    OpTray* tray() { return m_tray; }
    MoveHint* hint() { return m_hint; }
    RecoveryBar* recovery() { return m_recovery; }
    // an edit from an earlier window can be recovered
    bool offersRecovery() const override { return m_orphan.has_value(); }
    EditAutosave* autosave() { return m_autosave; }
    void newEmpty(int ranks, int stages, int microbatches); // an empty canvas, in edit mode
    bool editIncomplete(const Schedule& order, const QString& name = {}) override;
    bool changeMicrobatches(int count);
    void refreshActions(); // of what is selected and in the order
    void compareWith(const QString& name) override;

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    // edit_entry.cpp
    void startEdit(std::optional<Schedule> beginWith); // nullopt: the order of the run
    void refreshEdit();                                // title, actions and status after a change of the order
    void showEditedDeadlock();                         // why the edited order hangs, with a suggested change
    // edit_controller.cpp
    // mode Edit is set
    void begun(const std::shared_ptr<const RunView>& source, const Schedule& schedule, const CostModel& costs,
               OpPosition selected);
    // Costs without I and W: says where they are from, first without the run's file (given), then with it where another
    // run of it fits.
    void completeSplit(const CostModel& measured, const BackwardCosts& given);
    void applyTheme();
    void takeCosts(const CostModel& costs);
    void buildDeck();
    bool showsTray() const;
    void fitDeck(bool fresh); // space for the tray and the text; fresh: an edit starts
    void connectAll();
    void edited();
    void ended(); // edit mode was left, or another run is shown
    void keepLeft();
    void picture(bool detailed);
    void showWaiting();
    void selectionChanged();
    void keepChosen(); // by op, after a change that did not report its positions
    void showChosen();
    std::vector<OpPosition> opsIn(const std::vector<AreaSelection>& areas) const;
    OpPosition primary() const; // of the selected span
    Units units() const;
    bool on(ActionId id) const;
    // edit_drag.cpp
    void connectDrag();
    void dragged(int rank, int from, int toRank, int to);
    void dropped(int rank, int from, int toRank, int to);
    void endDrag();
    Result<Edited> moved(int rank, int from, int toRank, int to, bool carry) const;
    QString dragName(int rank, int from, int toRank) const;
    void explain(OpPosition from, int to, bool made);
    void tellDrag(const QString& message, bool valid, int rank, int toRank, int to, OpPosition moved);
    // Out of the tray; the pointer in the screen's coordinates.
    void trayDragged(const Op& op, const QPoint& at);
    void trayDropped(const Op& op, const QPoint& at);
    void goThere();
    void carryAlong();
    // edit_commands.cpp
    void connectCommands();
    bool apply(const QString& text, Result<Edited> edited);
    void refused(const Error& error);
    void copy(bool cut);
    void paste();
    void remove();
    void insertDelay();
    void fill();
    void snap(bool all);
    void toRank(int by);
    void extend(int by);
    void place(const std::vector<Op>& ops);
    void placeAll();
    void askMicrobatches();
    void askEmpty();
    QString names(const std::vector<OpPosition>& positions) const; // "2F0", "2F0 and 3 more"
    // edit_reference.cpp
    void connectReference();
    void recogniseSoon();
    void recogniseNow();
    void makeReference();
    void refreshGhost();
    void keepSoon();
    void offerRecovery();
    void recover();

    ScheduleEditor* m_editor;
    EditOverlay* m_overlay;
    EditPanel* m_panel;
    QSplitter* m_deck = nullptr;
    ScheduleText* m_text = nullptr;
    OpTray* m_tray = nullptr;
    bool m_keptElsewhere = false;
    bool m_trayShown = true;
    MoveHint* m_hint = nullptr;
    EditAutosave* m_autosave = nullptr;
    RecoveryBar* m_recovery = nullptr;
    std::optional<EditAutosave::Orphan> m_orphan;

    std::shared_ptr<const RunView> m_source;
    std::vector<OpPosition> m_chosen;
    std::vector<std::pair<int, Op>> m_chosenOps; // the same, as ops with their ranks
    bool m_choosing = false;                     // this object changes the selection
    RowGap m_gap;
    std::shared_ptr<const TimelinePanel> m_picture; // of the committed order
    std::shared_ptr<const TimelinePanel> m_waiting; // the detailed picture, shown after the drag
    Job m_detailing;

    bool m_dragging = false;
    OpPosition m_refusedFrom; // the op's place before the last refused drop
    Op m_refusedOp;
    int m_refusedTo = -1;
    int m_goThere = -1;
    Job m_explaining;

    OpPattern m_pattern;
    int m_copies = 0; // copies of the pattern pasted so far

    std::optional<Schedule> m_kept; // as last saved or recorded
    struct Left {                   // an order left with a fault, which can't go into the list
        QString file;
        qint64 id = 0;
        Schedule schedule;
    };
    std::optional<Left> m_left;
    Job m_completing;                        // searching for I and W
    std::optional<CostModel> m_waitingCosts; // applied after the drag
    int m_keeping = 0;                       // orders left behind that are being simulated for the list

    QTimer m_recognise;
    Job m_recognising;
    EditPanel::Reference m_against;
    std::shared_ptr<const TimelinePanel> m_againstPicture, m_originalPicture;
    Job m_referencing;
};

} // namespace stagewright
