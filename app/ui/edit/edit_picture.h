// EditPicture: the edited order in the views. Large orders are drawn at once from their spans; the rest is computed in
// the background. GUI thread only.
#pragma once

#include "app/ui/edit/edit_drag.h"

namespace stagewright {

class EditPicture : public QObject {
    Q_OBJECT
public:
    EditPicture(Workspace& workspace, ScheduleEditor* editor, EditSelection* selection, EditOverlay* overlay,
                const EditDrag& drag); // the overlay's child
    void draw();
    void showWaiting();                           // the detailed picture, unless an op is dragged
    void keepOriginal() { m_original = m_panel; } // the picture is that of the original order
    const std::shared_ptr<const TimelinePanel>& original() const { return m_original; }
    void clear();

signals:
    void drawn();
    void detailed();

private:
    Workspace& m_workspace;
    TimelineView* m_view;
    ScheduleEditor* m_editor;
    EditSelection* m_selection;
    EditOverlay* m_overlay;
    const EditDrag& m_drag;
    std::shared_ptr<const TimelinePanel> m_panel;   // of the committed order
    std::shared_ptr<const TimelinePanel> m_waiting; // the detailed picture, shown after the drag
    std::shared_ptr<const TimelinePanel> m_original;
    Job m_detailing;
};

} // namespace stagewright
