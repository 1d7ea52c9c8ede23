#include "app/ui/workspace/bottom_dock.h"

#include <QDockWidget>

#include "app/ui/workspace/workspace.h"

namespace stagewright {

QDockWidget* makeBottomDock(Workspace& workspace, const QString& name, const QString& title, QWidget* panel,
                            QAction* toggle, const std::function<void()>& shown)
{
    auto* dock = new QDockWidget(title, workspace.window());
    dock->setObjectName(name);
    dock->setWidget(panel);
    dock->setFeatures(QDockWidget::DockWidgetClosable);
    dock->hide();
    QObject::connect(toggle, &QAction::triggered, dock, [dock, shown](bool wanted) {
        dock->setVisible(wanted);
        if (!wanted) return;
        dock->raise();
        shown();
    });
    QObject::connect(dock, &QDockWidget::visibilityChanged, toggle,
                     [dock, toggle] { toggle->setChecked(!dock->isHidden()); });
    return dock;
}

} // namespace stagewright
