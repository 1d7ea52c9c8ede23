// FlameController: the dock with the flame graph of the step shown, or of the selected area of it.
#pragma once

#include "app/ui/workspace/dock_of_step.h"

namespace stagewright {

class FlameView;

class FlameController : public DockOfStep {
    Q_OBJECT
public:
    explicit FlameController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();
    static std::vector<ShowEntry> showTable();
    FlameView* view() { return m_flame; }

private:
    FlameController(Workspace& workspace, FlameView* flame);
    void compute(const std::shared_ptr<const RunView>& view) override;
    void clear() override;
    void fold();
    void putAway();

    FlameView* m_flame;
    std::shared_ptr<const RunView> m_view; // in the dock; null: none
    std::weak_ptr<const RunView> m_asked;  // for which the dock was hidden or shown
    bool m_away = false;                   // hidden until a run has kernels or ranges
};

} // namespace stagewright
