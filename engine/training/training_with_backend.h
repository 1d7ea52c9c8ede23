// Training on a backend that the caller brings, instead of one from the registry.
#pragma once

#include <memory>

#include "engine/training/training.h"
#include "schedules/check/checked_schedule.h"

namespace stagewright {

// As Training::create, options.backend being a name for messages only. The checked one may serve several trainings.
Result<std::unique_ptr<Training>> createTraining(const Schedule& schedule, const TrainingOptions& options,
                                                 std::unique_ptr<Backend> backend);
Result<std::unique_ptr<Training>> createTraining(const std::shared_ptr<const CheckedSchedule>& schedule, const TrainingOptions& options,
                                                 std::unique_ptr<Backend> backend);

} // namespace stagewright
