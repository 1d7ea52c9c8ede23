// EditSelection: the ops and the gap that are selected in edit mode, the same in every view. Ops keep their selection
// through changes of the order. GUI thread only.
#pragma once

#include <optional>
#include <vector>

#include <QObject>

#include "schedules/edit/edit_timing.h"
#include "widgets/edit/edit_overlay.h"
#include "widgets/edit/schedule_editor.h"

namespace stagewright {

class EditSelection : public QObject {
    Q_OBJECT
public:
    EditSelection(TimelineView* view, ScheduleEditor* editor, EditOverlay* overlay); // the overlay's child
    const std::vector<OpPosition>& ops() const { return m_ops; }                     // the selected op first
    const RowGap& gap() const { return m_gap; }
    void choose(std::vector<OpPosition> positions);
    void chooseGap(const RowGap& gap);
    void clear();       // without a word
    void follow();      // after a change of the order: what it moved, else the same ops where they are now
    void show();        // in the views
    void hold(bool on); // what the views do meanwhile selects nothing
    QString names() const { return names(m_ops); }
    QString names(const std::vector<OpPosition>& positions) const; // "2F0", "2F0 and 3 more"
    QRectF place() const;                                          // in the timeline, of the first op
    // A change of the order; an area selection becomes a selection of ops. False: nothing changed.
    bool apply(const QString& text, Result<Edited> change);

signals:
    void changed(); // ops or gap

private:
    void selectionChanged();
    void toggle(SpanRef ref);
    void keep(); // by op, after a change that did not report its positions
    std::vector<OpPosition> opsIn(const std::vector<AreaSelection>& areas) const;
    OpPosition primary() const; // of the selected span
    Nanos origin() const;       // of the picture

    TimelineView* m_view;
    ViewState* m_state;
    ScheduleEditor* m_editor;
    EditOverlay* m_overlay;
    std::vector<OpPosition> m_ops;
    std::vector<std::pair<int, Op>> m_places; // the same, as ops with their ranks
    RowGap m_gap;
    bool m_held = false;
};

} // namespace stagewright
