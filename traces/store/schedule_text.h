// A schedule as lossless text (a CSV can't hold copies of stages, fillers, slices): JSON with one string of op
// texts per rank (docs/database.md, "Schedules").
#pragma once

#include <string>
#include <string_view>

#include "schedules/base/result.h"
#include "schedules/model/schedule.h"

namespace stagewright {

std::string writeScheduleText(const Schedule& schedule);
// Strict in form; validate() checks whether the schedule is valid.
Result<Schedule> readScheduleText(std::string_view text);

} // namespace stagewright
