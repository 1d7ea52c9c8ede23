#include "app/ui/tables/tables_controller.h"

#include <algorithm>

#include <QTreeWidget>

#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "widgets/literals.h"
#include "widgets/tables/tables_panel.h"

namespace stagewright {

std::vector<ActionEntry> TablesController::actionTable()
{
    return {
        item("tables", ActionGroup::AnalyseTools, u"&Tables"_s, "Ctrl+Alt+T",
             u"Every table of the report of the step shown, as report --table prints them; choosing a row "
             "goes to its op"_s,
             {.at = 40, .checkable = true}),
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
    connect(m_panel, &TablesPanel::marksChosen, this, &TablesController::mark);
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

// Ops are marked as those that a search finds, idle times where they start.
void TablesController::mark(const document::Marks& marks)
{
    const auto shown = m_workspace.shown().view();
    if (!shown) return;
    auto spans = std::make_shared<std::vector<SpanId>>();
    for (const auto& one : marks.spans) spans->push_back(one.span);
    for (const auto& arrow : marks.arrows) spans->insert(spans->end(), {arrow.from.span, arrow.to.span});
    std::sort(spans->begin(), spans->end());
    spans->erase(std::unique(spans->begin(), spans->end()), spans->end());
    std::erase(*spans, noSpan);
    std::vector<Nanos> moments;
    for (const auto& gap : marks.gaps) moments.push_back(shown->panel->toAxis(gap.start));
    std::sort(moments.begin(), moments.end());
    m_workspace.feature<OpFinding>()->mark(spans, std::move(moments));
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
    if (panel.table() == nullptr) panel.setChosen(panel.firstWithRows());
}

} // namespace

std::vector<ShowEntry> TablesController::showTable()
{
    return {
        {"tables", 320, &showKernelClasses},
        {"curves", 330, [](const ShowRequest& request) { openPanel(request).choose(u"loss_curves"_s); }},
    };
}

FeatureEntry tablesFeature() { return featureEntry<TablesController>(); }

} // namespace stagewright
