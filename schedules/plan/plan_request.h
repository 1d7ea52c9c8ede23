// What to plan in place of a schedule: the same shape, placement and family (forwards and full backwards, or with the
// backward split), with costs of its own.
#pragma once

#include "schedules/base/result.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"
#include "schedules/plan/plan.h"

namespace stagewright {

// costs: of the schedule's stages. split: the plan may part full backwards into I and W, which the costs then know; else
// a full backward stays one. Usage: why no plan takes the schedule's place (its placement, rule of weights,
// recomputation, slices). Seconds are 0 and there are no caps: set them.
Result<PlanRequest> planRequestFor(const Schedule& schedule, const CostModel& costs, bool split);

// The plan in the schedule's family, under its name: without split, I and the W of no length are one full backward again.
Schedule planInFamily(const Schedule& plan, const Schedule& schedule, bool split);

} // namespace stagewright
