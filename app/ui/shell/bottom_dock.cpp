#include "app/ui/shell/bottom_dock.h"

#include <QDockWidget>

#include "app/ui/shell/main_window.h"

namespace stagewright {

QDockWidget* makeBottomDock(MainWindow& window, const QString& name, const QString& title, QWidget* panel, ActionId action, const std::function<void()>& shown)
{
    auto* dock = new QDockWidget(title, &window);
    dock->setObjectName(name);
    dock->setWidget(panel);
    dock->setFeatures(QDockWidget::DockWidgetClosable);
    window.addDockWidget(Qt::BottomDockWidgetArea, dock);
    dock->hide();
    QAction* toggle = window.actions()[action];
    QObject::connect(toggle, &QAction::triggered, dock, [dock, shown](bool wanted) {
        dock->setVisible(wanted);
        if (!wanted) return;
        dock->raise();
        shown();
    });
    QObject::connect(dock, &QDockWidget::visibilityChanged, toggle, [dock, toggle] { toggle->setChecked(!dock->isHidden()); });
    return dock;
}

} // namespace stagewright
