// MemoryController: the content of the memory charts: categories, scales, counters, and the schedule simulated with the
// run's own costs over the measured curve. Connects the actions of the Memory charts menu and remembers the settings.
#pragma once

#include <memory>

#include <QObject>
#include <QPoint>

#include "app/ui/workspace/feature.h"
#include "widgets/job.h"

namespace stagewright {

struct RunView;
struct TimelinePanel;

class MemoryController : public Feature {
    Q_OBJECT
public:
    explicit MemoryController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();
    static std::vector<ShowEntry> showTable();

private:
    void refresh();          // checks and enables actions
    void refreshPredicted(); // simulated off the GUI thread, once per run
    void showMenu(const QPoint& at);

    std::shared_ptr<const RunView> m_predictedOf; // source of m_predicted
    std::shared_ptr<const TimelinePanel> m_predicted;
    Job m_predicting;
};

} // namespace stagewright
