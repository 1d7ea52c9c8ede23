// DockOfStep: a feature that is a dock at the lower edge with something computed of the step shown (A's in compare
// mode), off the GUI thread and only while the dock is open; the newest step wins. A row that is about an op selects
// it.
#pragma once

#include <functional>
#include <memory>

#include "app/ui/runs/run_library.h"
#include "app/ui/workspace/feature.h"
#include "widgets/job.h"

class QAction;

namespace stagewright {

class DockOfStep : public Feature {
    Q_OBJECT
public:
    FeatureParts parts() override;
    QDockWidget* dock() { return m_dock; }

protected:
    DockOfStep(Workspace& workspace, const QString& name, const QString& title, QWidget* panel, QAction* toggle,
               const std::function<void()>& shown);
    virtual void compute(const std::shared_ptr<const RunView>& view) = 0; // starts m_job and shows what it gives
    virtual void clear() = 0;                                             // nothing is shown
    void choose(SpanId span);                                             // of the run it was computed of

    Job m_job;

private:
    void refresh();

    QDockWidget* m_dock;
    std::shared_ptr<const RunView> m_of; // what is in the dock or under way
};

} // namespace stagewright
