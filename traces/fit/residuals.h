// Residuals: predictions of fitted costs compared with measured times, per op and for the step.
#pragma once

#include <vector>

#include "schedules/base/result.h"
#include "schedules/model/cost_model.h"
#include "traces/run/run.h"

namespace stagewright {

// The ops of one kind, stage and rank over the measured steps. Residual: measured − predicted.
struct OpResiduals {
    OpKind kind{};
    int stage = 0;
    int rank = 0;
    std::int64_t count = 0;
    Nanos predicted = 0;    // median of the predictions: ops may be parts of unequal length
    Nanos measured = 0;     // median
    Nanos residual = 0;     // median; 0 if the costs are fitted from this run
    Nanos percentile95 = 0; // of |residual|
    SpanId worst = noSpan;  // largest |residual|
    Nanos worstResidual = 0;
};

struct Residuals {
    std::vector<OpResiduals> ops; // by kind, stage, rank
    Nanos predictedStep = 0;      // makespan of the schedule simulated with the costs
    Nanos measuredStep = 0;       // median makespan of the measured steps
    std::int64_t steps = 0;       // that were read and have ops
    std::int64_t measured = 0;    // steps of the run but its warm-up
    double error = 0;             // (predicted − measured) / measured of the step
};

struct OpResidual { // one op; residual: measured − predicted
    SpanId span = noSpan;
    Nanos predicted = 0;
    Nanos measured = 0;
    Nanos residual() const { return measured - predicted; }
};

// Every op of one step with predicted costs (no overlapped pairs, no discarded ops), by rank, then start.
std::vector<OpResidual> residualsOfStep(const Timeline& timeline, int step, const CostModel& costs);

Result<void> hasSchedule(const Run& run); // Usage error if it has none to predict from
// The run's warm-up steps are left out, and of a large run those that were not read. Usage error if the run has no
// schedule.
Result<Residuals> residualsOf(const Run& run, const CostModel& costs);
// The same where the step's makespan with these costs is known, of a run that has a schedule.
Result<Residuals> residualsOf(const Run& run, const CostModel& costs, Nanos predictedStep);

} // namespace stagewright
