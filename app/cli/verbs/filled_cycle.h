// record --fill: work that can wait in the gaps of a training's lists, by how long it takes on this computer.
#pragma once

#include <memory>
#include <vector>

#include "engine/training/training.h"
#include "schedules/check/checked_schedule.h"
#include "schedules/plan/fill_plan.h"

namespace stagewright {

class Session;

// Trains a few steps with all pieces at their ends, and fills the gaps by what they took. What it found is said.
Result<std::vector<std::shared_ptr<const CheckedSchedule>>>
measuredCycle(const std::shared_ptr<const CheckedSchedule>& checked, const TrainingOptions& options, FillRule rule,
              Session& session);

} // namespace stagewright
