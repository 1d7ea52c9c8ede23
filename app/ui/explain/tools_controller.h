// ToolsController: the tools for the run shown: lowered, what if, residuals. Each takes over the panel at the right
// and, if it has one, draws its own picture in the timeline. One picture is made at a time, off the GUI thread; the
// latest request waits for it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "app/ui/workspace/feature.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/shown.h"
#include "schedules/messages/channels.h"
#include "schedules/messages/lower.h"
#include "schedules/model/cost_model.h"
#include "widgets/job.h"

namespace stagewright {

class LoweredPanel;
class ResidualPanel;
class WhatIfPanel;
struct LoweredPicture;
struct WhatIfBase;

class ToolsController : public Feature, public WhatIfAsking {
    Q_OBJECT
public:
    explicit ToolsController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();
    static std::vector<ShowEntry> showTable();
    FeatureParts parts() override;
    void askWhatIf(const QString& changes) override;

private:
    struct ToolInput {
        std::shared_ptr<const Schedule> schedule; // compute-only
        CostModel costs;
        std::shared_ptr<const Schedule> executed; // what changes are compared with (traces/fit/executed_run.h)
        CostModel executedCosts;
        Channels channels;
        std::optional<Lowering> lowering;
    };
    void forget();
    void toolSet();
    void showPanel(); // the one at the right
    Result<std::shared_ptr<const ToolInput>> toolInput();
    void askTool(); // requests its picture
    void askLowered(const ToolInput& input);
    void askWhatIf(const ToolInput& input);
    void askResiduals(const ToolInput& input);
    void readResidualCosts(const RunRef& source);
    void showPicture(const std::vector<std::shared_ptr<const TimelinePanel>>& panels);
    void refreshActions();
    QString text() const;

    LoweredPanel* m_lowered;
    WhatIfPanel* m_whatIf;
    ResidualPanel* m_residuals;
    Job m_making;
    Job m_reading;                           // a run whose costs predict the one shown
    Shown::Tool m_drawn = Shown::Tool::None; // whose picture may be in the views
    std::shared_ptr<const ToolInput> m_toolInput;
    std::shared_ptr<const LoweredPicture> m_loweredPicture;
    std::shared_ptr<const WhatIfBase> m_whatIfBase; // of m_toolInput
    RunRef m_residualSource;                        // source of m_residualCosts
    std::optional<CostModel> m_residualCosts;
};

} // namespace stagewright
