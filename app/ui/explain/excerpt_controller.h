// Runs with steps too large for one timeline: once what is in view is little enough it is read, and takes part in
// everything a run does (selection, arrows, causes, gaps, memory, slack); the rest stays as it was drawn. A click asks
// for the part around it; where that can't be, it says why.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include <QTimer>

#include "app/ui/runs/run_library.h"
#include "app/ui/workspace/feature.h"

namespace stagewright {

class ExcerptController : public Feature {
    Q_OBJECT
public:
    explicit ExcerptController(Workspace& workspace);
    bool settled() const override { return !m_moved.isActive(); }

private:
    std::shared_ptr<const LargeRun> run() const; // that is shown; null: it has no such steps
    void presented();
    void look(); // whether what is in view should be read
    void clicked(int panel, int rank, Nanos axisTime);
    void read(TimeRange axisRange, std::function<void()> then = {});
    void selectAt(int rank, Nanos axisTime);

    QTimer m_moved; // the view moved a moment ago
    void refine();

    std::shared_ptr<const RunView> m_base; // without an excerpt
    std::shared_ptr<const RunView> m_fine; // of the same, with a finer overview than the first
    std::optional<TimeRange> m_asked;      // axis time, of the request under way or the excerpt shown
};

} // namespace stagewright
