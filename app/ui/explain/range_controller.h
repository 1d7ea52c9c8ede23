// RangeController: a selected range filters every view. It owns the table of the selected area and has the side panel
// print, and label, the figures of the range.
#pragma once

#include <memory>

#include <QObject>

#include "app/ui/workspace/feature.h"
#include "widgets/job.h"

namespace stagewright {

class AggregationPanel;
struct RunView;

class RangeController : public Feature {
    Q_OBJECT
public:
    explicit RangeController(Workspace& workspace);
    static std::vector<ShowEntry> showTable();
    AggregationPanel* table() const { return m_table; }
    bool settled() const override;

private:
    void selectionChanged();
    void filterPanel(); // figures of the range, off the GUI thread; the latest range waits for the running one

    AggregationPanel* m_table;
    std::weak_ptr<const RunView> m_presented; // of which the panel beside has the timeline already
    Job m_summing;
};

} // namespace stagewright
