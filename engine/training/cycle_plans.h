// A training whose steps take turns with several schedules: step n runs schedule n mod k. They differ in work that fills
// gaps alone (schedules/plan/fill_plan.h).
//
// K-FAC's factors are of what the first step of a cycle computes. A factor that comes, in that step, before its forward
// (or backward) is of the cycle before; so is an inversion that is not behind all factors of its stage. Inverses are in
// use from the optimizer of the step in which they were made.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/training/execution_plan.h"
#include "schedules/base/result.h"
#include "schedules/check/checked_schedule.h"

namespace stagewright {

struct TrainingOptions;

struct CyclePlans {
    std::vector<std::shared_ptr<const CheckedSchedule>> schedules; // by step of the cycle
    std::vector<ExecutionPlan> plans;
    int pieces = 0; // of an inversion; 0: no factors in the lists

    std::size_t at(int step) const { return static_cast<std::size_t>(step) % plans.size(); }
    // Which of the two refreshes that may be under way an op of this step is of.
    int refreshOf(const PlannedOp& planned, int step) const
    {
        return (step / static_cast<int>(plans.size()) + planned.cyclesBack) % 2;
    }
};

// Usage where the schedules differ in more, where a cycle's factors and inversions are not each there once, and for
// options that can't have them.
Result<CyclePlans> planCycle(std::span<const std::shared_ptr<const CheckedSchedule>> cycle,
                             const TrainingOptions& options);

} // namespace stagewright
