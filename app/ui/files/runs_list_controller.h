// RunsListController: the list of files and runs at the left: choosing, comparing, renaming and deleting runs.
#pragma once

#include <QPoint>

#include "app/ui/workspace/feature.h"
#include "widgets/runs/runs_model.h"

namespace stagewright {

class RunsListController : public Feature {
    Q_OBJECT
public:
    explicit RunsListController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();

protected:
    bool eventFilter(QObject* watched, QEvent* event) override; // of the window

private:
    void refresh();
    void refreshActions(); // shown while there are runs and it is wanted
    void openMenu(const QPoint& at, const RunRef& ref, const QString& file);
    void rename(const RunRef& ref);
    void remove(const RunRef& ref);
};

} // namespace stagewright
