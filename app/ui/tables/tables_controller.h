// TablesController: the dock with the tables of the report of the step shown.
#pragma once

#include "app/ui/workspace/dock_of_step.h"

namespace stagewright {

namespace document {
struct Marks;
}
class TablesPanel;

class TablesController : public DockOfStep {
    Q_OBJECT
public:
    explicit TablesController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();
    static std::vector<ShowEntry> showTable();
    TablesPanel* panel() { return m_panel; }

private:
    TablesController(Workspace& workspace, TablesPanel* panel);
    void compute(const std::shared_ptr<const RunView>& view) override;
    void clear() override;
    void mark(const document::Marks& marks);

    TablesPanel* m_panel;
};

} // namespace stagewright
