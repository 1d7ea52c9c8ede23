// EditReference: what the edited order is called, the library schedule that it is compared with, and the ghost of
// another order on the canvas. GUI thread only.
#pragma once

#include <QTimer>

#include "app/ui/edit/edit_picture.h"
#include "widgets/edit/edit_panel.h"

namespace stagewright {

class EditReference : public QObject {
    Q_OBJECT
public:
    EditReference(Workspace& workspace, ScheduleEditor* editor, EditOverlay* overlay, EditPanel* panel,
                  const EditDrag& drag, const EditPicture& picture); // the overlay's child
    void recogniseSoon();
    void compareWith(const QString& name); // a library schedule; empty: none
    void make();                           // again, of another order
    void refreshGhost();
    bool hasPicture() const { return m_againstPicture != nullptr; }
    bool settled() const { return !m_recognise.isActive(); }
    void stop(); // edit mode ended

signals:
    void changed();

private:
    void recogniseNow();

    Workspace& m_workspace;
    ScheduleEditor* m_editor;
    EditOverlay* m_overlay;
    EditPanel* m_panel;
    const EditDrag& m_drag;
    const EditPicture& m_picture;
    QTimer m_recognise;
    Job m_recognising;
    EditPanel::Reference m_against;
    std::shared_ptr<const TimelinePanel> m_againstPicture;
    Job m_referencing;
};

} // namespace stagewright
