// PreferencesController: the preferences' dialog and actions of one window, and what a change means to it.
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
    PreferencesDialog* open(); // not modal; one a window, deleted when closed

signals:
    void restartAsked();

private:
    MainWindow& m_window;
    QPointer<PreferencesDialog> m_dialog;
};

} // namespace stagewright
