// PreferencesController: a window's preferences dialog and actions, and what it does when a preference changes.
#pragma once

#include <QObject>
#include <QPointer>

#include "widgets/preferences/preferences_dialog.h"

namespace stagewright {

class MainWindow;

class PreferencesController : public QObject {
    Q_OBJECT
public:
    explicit PreferencesController(MainWindow& window);
    PreferencesDialog* open(); // not modal; one per window, deleted when closed

signals:
    void restartAsked();

private:
    MainWindow& m_window;
    QPointer<PreferencesDialog> m_dialog;
};

} // namespace stagewright
