// Appearance: how the preferences make a window look and print: theme, fonts, style, time unit, keys of the views.
#pragma once

#include <QObject>

#include "widgets/preferences/preferences.h"

namespace stagewright {

class Workspace;

class Appearance : public QObject {
    Q_OBJECT
public:
    // style and fonts of the application; before the first widget of a window
    static void prepare();
    // owned by the workspace; applies the preferences, now and when they change
    explicit Appearance(Workspace& workspace);
    static void choose(ThemeChoice theme); // of every window; remembered
    void systemChanged();                  // the desktop's colours may be others

private:
    void apply();
    void applyTheme();

    Workspace& m_workspace;
    bool m_systemDark = false;
};

} // namespace stagewright
