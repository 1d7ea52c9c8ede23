// PlanController: compares a measured run with its own plan, which is its schedule simulated with the costs fitted from
// it (traces/compare/plan_of.h), and selects and reports the first op that deviates. GUI thread only.
#pragma once

#include <memory>
#include <optional>

#include <QObject>

#include "app/ui/workspace/feature.h"
#include "app/ui/workspace/offers.h"
#include "traces/compare/plan_of.h"
#include "widgets/job.h"
#include "widgets/runs/runs_model.h"

namespace stagewright {

class PlanController : public Feature, public PlanComparing {
    Q_OBJECT
public:
    explicit PlanController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();
    static std::vector<ShowEntry> showTable();

    void compareWithPlan(const RunRef& measured) override;
    // of the last comparison; nullopt: no op deviates
    const std::optional<Deviation>& deviation() const { return m_deviation; }

private:
    void shown();
    void tell(const std::optional<Deviation>& deviation);

    RunRef m_measured, m_plan; // announced when their comparison is on screen
    std::optional<Deviation> m_deviation;
    Job m_planning;  // reads the run, then makes its plan
    Job m_deviating; // finds the first deviation
};

} // namespace stagewright
