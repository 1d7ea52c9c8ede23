// EditDrag: moving ops in edit mode: the picture under the pointer while one is dragged, from its place or out of the
// tray, nudges by the keys, and the card that says why an op can't go where it was dropped. GUI thread only.
#pragma once

#include <QObject>

#include "app/ui/edit/edit_selection.h"
#include "app/ui/workspace/actions.h"
#include "widgets/job.h"

namespace stagewright {

class MoveHint;
class Workspace;

class EditDrag : public QObject {
    Q_OBJECT
public:
    EditDrag(Workspace& workspace, ScheduleEditor* editor, EditSelection* selection, EditOverlay* overlay); // its child
    bool dragging() const { return m_dragging; }
    MoveHint* hint() { return m_hint; }
    bool canGo() const;    // to the nearest valid place of the op dropped last
    bool canCarry() const; // its dependants along
    // Out of the tray; the pointer in the screen's coordinates.
    void trayDragged(const Op& op, const QPoint& at);
    void trayDropped(const Op& op, const QPoint& at);
    void end();
    void stop(); // edit mode ended
    // Says on the card why a change was refused, under a rectangle of the view or the selected op; an error without a
    // message takes the card away.
    void refuse(const Error& error, const std::optional<QRectF>& at = std::nullopt);

signals:
    void ended();
    void explained(); // the card says something else

private:
    void dragged(int rank, int from, int toRank, int to);
    void dropped(int rank, int from, int toRank, int to);
    void nudged(int rank, int position, int by);
    Result<Edited> moved(int rank, int from, int toRank, int to, bool carry) const;
    QString nameOf(int rank, int from, int toRank) const;
    void showPreview();
    void explain(OpPosition from, int to, bool made);
    void tell(const QString& message, bool valid, int rank, int toRank, int to, OpPosition moved);
    void goThere();
    void carryAlong();
    bool isOn(ActionId id) const;

    struct Refused { // the last drop at an invalid place
        OpPosition from;
        Op op;
        int to = -1;
    };
    Workspace& m_workspace;
    TimelineView* m_view;
    ScheduleEditor* m_editor;
    EditSelection* m_selection;
    EditOverlay* m_overlay;
    MoveHint* m_hint;
    bool m_dragging = false;
    Refused m_refused;
    int m_goThere = -1;
    Job m_explaining;
};

} // namespace stagewright
