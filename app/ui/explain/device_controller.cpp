#include "app/ui/explain/device_controller.h"

#include "app/ui/workspace/workspace.h"
#include "widgets/device/device_panel.h"
#include "widgets/literals.h"

namespace stagewright {

std::vector<ActionEntry> DeviceController::actionTable()
{
    return {
        item("deviceTables", ActionGroup::AnalyseTools, u"&Kernels and links"_s, "Ctrl+Alt+K",
             u"What ran on the devices: kernels and copies by op, waiting and transfer by link, and the "
             "roofline of each kind of op"_s,
             {.at = 10, .checkable = true}),
    };
}

DeviceController::DeviceController(Workspace& workspace) : DeviceController(workspace, new DevicePanel) {}

DeviceController::DeviceController(Workspace& workspace, DevicePanel* panel)
    : DockOfStep(workspace, u"deviceDock"_s, u"Kernels and links"_s, panel, workspace.actions()["deviceTables"],
                 [panel] { panel->pages()->setFocus(); }),
      m_panel(panel)
{
    connect(&workspace, &Workspace::themeChanged, this, [this] { m_panel->setTheme(m_workspace.theme()); });
    connect(m_panel, &DevicePanel::spanChosen, this, &DeviceController::choose);
    m_panel->setTheme(workspace.theme());
}

void DeviceController::compute(const std::shared_ptr<const RunView>& view)
{
    m_panel->setWorking();
    m_job.start(
        [view] {
            return std::make_shared<const DeviceFigures>(deviceFiguresOf(*view->run, view->step, view->panel->units));
        },
        [this](const std::shared_ptr<const DeviceFigures>& figures) { m_panel->setFigures(figures); });
}

void DeviceController::clear() { m_panel->setFigures(nullptr); }

namespace {

void showTables(const ShowRequest& request, int page)
{
    request.workspace.actions()["deviceTables"]->trigger();
    request.workspace.feature<DeviceController>()->panel()->pages()->setCurrentIndex(page);
    request.settle();
}

} // namespace

std::vector<ShowEntry> DeviceController::showTable()
{
    return {
        {"kernels", 140, [](const ShowRequest& request) { showTables(request, 0); }},
        {"links", 150, [](const ShowRequest& request) { showTables(request, 1); }},
        {"roofline", 160, [](const ShowRequest& request) { showTables(request, 2); }},
    };
}

FeatureEntry deviceFeature() { return featureEntry<DeviceController>(); }

} // namespace stagewright
