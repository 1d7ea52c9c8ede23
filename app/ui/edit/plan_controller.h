// PlanController: compares a measured run with its own plan, which is its schedule simulated with the costs fitted from it
// (traces/compare/plan_of.h), and selects and reports the first op that deviates. GUI thread only.
#pragma once

#include <memory>
#include <optional>

#include <QObject>

#include "traces/compare/plan_of.h"
#include "widgets/runs/runs_model.h"

namespace stagewright {

class MainWindow;

class PlanController : public QObject {
    Q_OBJECT
public:
    explicit PlanController(MainWindow& window);

    void compare(const RunRef& measured); // the plan is A; it is added to the simulated runs
    bool settled() const { return m_busy == 0; }
    const std::optional<Deviation>& deviation() const { return m_deviation; } // of the last comparison; nullopt: no op deviates

private:
    void shown();
    void tell(const std::optional<Deviation>& deviation);

    MainWindow& m_window;
    RunRef m_measured, m_plan; // announced when their comparison is on screen
    std::optional<Deviation> m_deviation;
    quint64 m_generation = 0;
    int m_busy = 0;
};

} // namespace stagewright
