// Trainings and checks of schedules as tests make them: checked on the way, and an error where they have faults.
#pragma once

#include <memory>
#include <stop_token>
#include <utility>

#include "engine/check/check.h"
#include "engine/training/training.h"
#include "schedules/check/checked_schedule.h"

namespace stagewright::test {

inline Result<std::unique_ptr<Training>> trainingOf(const Schedule& schedule, const TrainingOptions& options)
{
    const auto checked = CheckedSchedule::of(schedule);
    return checked ? Training::create(*checked, options) : tl::unexpected(checked.error());
}

inline Result<std::unique_ptr<Training>> trainingOf(const Schedule& schedule, const TrainingOptions& options,
                                                    std::unique_ptr<Backend> backend)
{
    const auto checked = CheckedSchedule::of(schedule);
    return checked ? createTraining(*checked, options, std::move(backend)) : tl::unexpected(checked.error());
}

inline Result<CheckResult> checkOf(const Schedule& schedule, const TrainingOptions& options, int steps,
                                   const std::stop_token& stop)
{
    const auto checked = CheckedSchedule::of(schedule);
    return checked ? checkSchedule(*checked, options, steps, stop) : tl::unexpected(checked.error());
}

inline Result<CheckResult> checkOf(const Schedule& schedule, const TrainingOptions& options, int steps,
                                   const std::stop_token& stop, const BackendMaker& makeBackend)
{
    const auto checked = CheckedSchedule::of(schedule);
    return checked ? checkSchedule(*checked, options, steps, stop, makeBackend) : tl::unexpected(checked.error());
}

} // namespace stagewright::test
