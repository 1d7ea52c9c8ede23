// EditController: edit mode. It enters and leaves it, gives the ScheduleEditor an order with its costs, and passes each
// change on to the parts of edit mode: what is selected (edit_selection), dragged (edit_drag), commanded
// (edit_commands), on screen (edit_picture), under the canvas (edit_deck), compared (edit_reference) and kept for
// recovery (edit_recovery). GUI thread only.
#pragma once

#include <memory>
#include <optional>

#include "app/costs/split_sources.h"
#include "app/ui/edit/edit_commands.h"
#include "app/ui/edit/edit_deck.h"
#include "app/ui/edit/edit_picture.h"
#include "app/ui/edit/edit_recovery.h"
#include "app/ui/edit/edit_reference.h"
#include "app/ui/workspace/actions.h"
#include "app/ui/workspace/feature.h"
#include "app/ui/workspace/offers.h"

namespace stagewright {

class EditController : public Feature, public OrderEditing {
    Q_OBJECT
public:
    explicit EditController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable(); // edit_actions.cpp
    static std::vector<ShowEntry> showTable();
    FeatureParts parts() override;
    bool mayClose() override;

    ScheduleEditor& editor() override { return *m_editor; }
    const std::shared_ptr<const RunView>& source() const override { return m_source; }
    void enterEdit() override;
    void leaveEdit() override;
    // Shows an in-memory run and edits it, with `order` as a change of this name; without a name the edit starts from
    // `order`.
    void editRun(Run run, const QString& change, Schedule order) override;
    // Edits a run that may not be open yet, with `order` as a change of this name, if its order is `original`; else
    // done(false) and nothing has changed.
    void editRunAgain(const RunRef& ref, const Schedule& original, const QString& change, const Schedule& order,
                      const std::function<void(bool)>& done);
    void newEmpty(int ranks, int stages, int microbatches); // an empty canvas, in edit mode
    bool editIncomplete(const Schedule& order, const QString& name = {}) override;
    void saved() override;
    void recorded(const Schedule& order) override;   // it may be another than the one edited now
    void closing() override { m_recovery->flush(); } // what is being edited stays on disk, for the next start
    bool escape() override;
    void redraw() override;
    TrayOfOps& tray() override { return *m_deck; }
    void setKeptElsewhere(bool kept) override { m_keptElsewhere = kept; }
    void setMoves(bool on) override { m_overlay->setMoves(on); }
    bool moves() const override { return m_overlay->moves(); }
    bool settled() const override;
    bool offersRecovery() const override { return m_recovery->offers(); }
    void compareWith(const QString& name) override { m_reference->compareWith(name); }
    void refreshActions(); // of what is selected and in the order

    EditPanel* panel() { return m_panel; }
    EditSelection& selection() { return *m_selection; }
    EditDrag& drag() { return *m_drag; }
    EditCommands& commands() { return *m_commands; }
    EditDeck& deck() { return *m_deck; }
    EditRecovery& recovery() { return *m_recovery; }

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void connectActions();
    void connectParts();
    void startEdit(std::optional<Schedule> beginWith); // nullopt: the order of the run
    // mode Edit is set
    void begun(const std::shared_ptr<const RunView>& source, const Schedule& schedule, const CostModel& costs,
               const Channels& channels, OpPosition selected);
    // Costs without I and W: says where they are from, first without the run's file (given), then with it where another
    // run of it fits.
    void completeSplit(const CostModel& measured, const BackwardCosts& given);
    void takeCosts(const CostModel& costs);
    void edited();
    void ended(); // edit mode was left, or another run is shown
    void keepLeft();
    void selected();
    void refreshEdit();        // title, actions and status after a change of the order
    void showEditedDeadlock(); // why the edited order hangs, with a suggested change

    ScheduleEditor* m_editor;
    EditOverlay* m_overlay;
    EditPanel* m_panel;
    EditSelection* m_selection;
    EditDrag* m_drag;
    EditCommands* m_commands;
    EditDeck* m_deck;
    EditPicture* m_picture;
    EditReference* m_reference;
    EditRecovery* m_recovery;
    std::shared_ptr<const RunView> m_source;
    bool m_keptElsewhere = false;
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
};

} // namespace stagewright
