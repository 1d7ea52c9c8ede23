// A schedule as text that loses nothing (a CSV can't hold copies of stages, fillers, slices): JSON with one string of op
// texts a rank (docs/database.md, "Schedules").
#pragma once

#include <string>
#include <string_view>

#include "schedules/base/result.h"
#include "schedules/schedule.h"

namespace stagewright {

std::string writeScheduleText(const Schedule& schedule);
// Strict in form; whether the schedule is valid is validate()'s matter.
Result<Schedule> readScheduleText(std::string_view text);

} // namespace stagewright
