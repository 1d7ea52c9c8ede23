// DeviceController: the dock with kernels, links and roofline of the step shown.
#pragma once

#include "app/ui/workspace/dock_of_step.h"

namespace stagewright {

class DevicePanel;

class DeviceController : public DockOfStep {
    Q_OBJECT
public:
    explicit DeviceController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();
    static std::vector<ShowEntry> showTable();
    DevicePanel* panel() { return m_panel; }

private:
    DeviceController(Workspace& workspace, DevicePanel* panel);
    void compute(const std::shared_ptr<const RunView>& view) override;
    void clear() override;

    DevicePanel* m_panel;
};

} // namespace stagewright
