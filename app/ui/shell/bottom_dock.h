// A dock at the lower edge of the window, hidden at first; its action shows and hides it and follows what the user closes.
#pragma once

#include <functional>

#include <QString>

#include "app/ui/shell/actions.h"

class QDockWidget;
class QWidget;

namespace stagewright {

class MainWindow;

// The window owns the dock, the dock its panel. shown: after the action showed it, for the focus. name: of the dock in saved layouts.
QDockWidget* makeBottomDock(MainWindow& window, const QString& name, const QString& title, QWidget* panel, ActionId action, const std::function<void()>& shown);

} // namespace stagewright
