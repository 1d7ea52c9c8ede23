// MapperController: the dock that makes a pipeline of a run's named ranges: rules, what they match, and the import with
// them.
#pragma once

#include "app/ui/workspace/dock_of_step.h"
#include "traces/import/name_patterns.h"
#include "traces/import/timeline_ranges.h"

namespace stagewright {

class MapperPanel;

class MapperController : public DockOfStep {
    Q_OBJECT
public:
    explicit MapperController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();
    static std::vector<ShowEntry> showTable();
    MapperPanel* panel() { return m_panel; }
    void open();    // shows the dock
    void suggest(); // rules from the names that look like passes
    // All or nothing; false: the window says why not.
    bool saveRules(const QString& path);
    bool openRules(const QString& path);
    void importWith(const QString& rulesFile); // the traces of the run shown, in the import dialog

private:
    MapperController(Workspace& workspace, MapperPanel* panel, QAction* toggle);
    void compute(const std::shared_ptr<const RunView>& view) override;
    void clear() override;
    void preview();
    void mark(); // the ranges that the rules match, in the timeline
    void askToSave(bool thenImport);
    void followSelection();

    QAction* m_toggle;
    MapperPanel* m_panel;
    Job m_previewing;
    std::shared_ptr<const RunView> m_view;
    std::shared_ptr<const TimelineRanges> m_ranges;
    std::shared_ptr<const std::vector<NamePattern>> m_patterns;
    bool m_marked = false;
};

} // namespace stagewright
