// A dock at the lower edge of the window, hidden at first; its action shows and hides it and follows what the user
// closes.
#pragma once

#include <functional>

#include <QString>

class QAction;
class QDockWidget;
class QWidget;

namespace stagewright {

class Workspace;

// The window owns the dock, the dock its panel; the feature names it among its parts. shown: after the action showed
// it, for the focus. name: of the dock in saved layouts.
QDockWidget* makeBottomDock(Workspace& workspace, const QString& name, const QString& title, QWidget* panel,
                            QAction* toggle, const std::function<void()>& shown);

} // namespace stagewright
