// EditDeck: under the canvas in edit mode: the order as text, and the tray of ops that are not placed. GUI thread only.
#pragma once

#include <QObject>

#include "app/ui/workspace/offers.h"

class QSplitter;

namespace stagewright {

class OpTray;
class ScheduleEditor;
class ScheduleText;
class TimelineView;
class Workspace;

class EditDeck : public QObject, public TrayOfOps {
    Q_OBJECT
public:
    EditDeck(Workspace& workspace, ScheduleEditor* editor); // the editor's child
    ScheduleText* text() { return m_text; }
    OpTray* tray() { return m_tray; }
    void setTray(bool shown, bool placesAll) override;
    void takeKeys() override;
    void begin();         // an edit starts, before the order is shown
    void fit(bool fresh); // space for the tray and the text; fresh: an edit starts
    void showOrder();     // the edited one
    void end();

private:
    bool showsText() const;
    bool showsTray() const;
    void showText(bool wanted);
    int chips() const; // the height of the tray
    void showTray();

    Workspace& m_workspace;
    TimelineView* m_view;
    ScheduleEditor* m_editor;
    QSplitter* m_deck;
    OpTray* m_tray;
    ScheduleText* m_text;
    bool m_trayShown = true;
};

} // namespace stagewright
