// ViewController: the actions on the views: fitting, going back, what they draw, the side panel, and the menu of an op.
#pragma once

#include <QPoint>

#include "app/ui/workspace/feature.h"
#include "widgets/timeline/view_state.h"

namespace stagewright {

class ViewController : public Feature {
    Q_OBJECT
public:
    explicit ViewController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();
    bool escape() override; // clears the selection

private:
    void spanMenu(const QPoint& at, SpanRef ref);
    void showPanels(); // at the right, if they are wanted
    void refreshActions();
};

} // namespace stagewright
