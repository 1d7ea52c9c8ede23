// FindingsController: does what a finding of the side panel says: a lever opens as an edit, as a recording with other
// layers, as a what-if, in the planner, or marks the ops it is about. GUI thread only.
#pragma once

#include <functional>

#include "app/ui/workspace/feature.h"
#include "traces/analysis/levers.h"

namespace stagewright {

class FindingsController : public Feature {
    Q_OBJECT
public:
    explicit FindingsController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable() { return {}; }
    static std::vector<ShowEntry> showTable() { return {}; }

private:
    void onItsRun(const std::function<void()>& act); // a comparison gives way to the run that the panel is about
    void act(const QString& lever);                  // by its name, of the run shown
    void plan();
    void perform(const Lever& lever);
    void editEarliest();
};

} // namespace stagewright
