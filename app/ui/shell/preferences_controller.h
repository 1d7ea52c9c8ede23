// PreferencesController: a window's preferences dialog and actions, and what it does when a preference changes.
#pragma once

#include <QObject>
#include <QPointer>

#include "app/ui/workspace/feature.h"
#include "widgets/preferences/preferences_dialog.h"

namespace stagewright {

class PreferencesController : public Feature {
    Q_OBJECT
public:
    explicit PreferencesController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();
    static std::vector<ShowEntry> showTable();
    PreferencesDialog* open(); // not modal; one per window, deleted when closed

private:
    QPointer<PreferencesDialog> m_dialog;
};

} // namespace stagewright
