#include "app/ui/tables/tables_controller.h"

#include <QListWidget>

#include "app/ui/workspace/workspace.h"
#include "widgets/literals.h"
#include "widgets/tables/tables_panel.h"

namespace stagewright {

std::vector<ActionEntry> TablesController::actionTable()
{
    return {
        {.id = "tables",
         .group = ActionGroup::AnalyseTools,
         .at = 40,
         .text = u"&Tables"_s,
         .keys = "Ctrl+Alt+T",
         .tooltip = u"Every table of the report of the step shown, as report --table prints them; choosing a row "
                    "goes to its op"_s,
         .checkable = true},
    };
}

TablesController::TablesController(Workspace& workspace) : TablesController(workspace, new TablesPanel) {}

TablesController::TablesController(Workspace& workspace, TablesPanel* panel)
    : DockOfStep(workspace, u"tablesDock"_s, u"Tables"_s, panel, workspace.actions()["tables"],
                 [panel] { panel->names()->setFocus(); }),
      m_panel(panel)
{
    m_panel->setTheme(workspace.theme());
    connect(&workspace, &Workspace::themeChanged, this, [this] { m_panel->setTheme(m_workspace.theme()); });
    connect(m_panel, &TablesPanel::spanChosen, this, &TablesController::choose);
}

void TablesController::compute(const std::shared_ptr<const RunView>& view)
{
    m_panel->setWorking();
    m_job.start(
        [view] {
            return std::make_shared<const std::vector<ReportTable>>(reportTables(StepContext(*view->run, view->step)));
        },
        [this, units = view->panel->units](const std::shared_ptr<const std::vector<ReportTable>>& tables) {
            m_panel->setTables(tables, units);
        });
}

void TablesController::clear() { m_panel->setTables(nullptr, {}); }

namespace {

TablesPanel& openPanel(const ShowRequest& request)
{
    auto* tables = request.workspace.feature<TablesController>();
    tables->dock()->show();
    request.settle();
    return *tables->panel();
}

// The time of each class of kernels, or without kernels the first table.
void showKernelClasses(const ShowRequest& request)
{
    TablesPanel& panel = openPanel(request);
    panel.choose(u"kernel_classes"_s);
    if (panel.table() == nullptr) panel.names()->setCurrentRow(panel.firstWithRows());
}

} // namespace

std::vector<ShowEntry> TablesController::showTable()
{
    return {
        {.name = "tables", .at = 320, .view = &showKernelClasses},
        {.name = "curves",
         .at = 330,
         .view = [](const ShowRequest& request) { openPanel(request).choose(u"loss_curves"_s); }},
    };
}

FeatureEntry tablesFeature() { return featureEntry<TablesController>(); }

} // namespace stagewright
