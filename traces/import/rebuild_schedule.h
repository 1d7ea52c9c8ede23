// The order that a job executed, as a schedule.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "schedules/model/schedule.h"

namespace stagewright {

// The order of a complete step: the first of those with the most ops. By step, rank and place: the ops, and whether each is the first of
// an overlapped pair. Null with `why` if there is no op, or the order is not a valid schedule; steps that differ are noted.
std::shared_ptr<const Schedule> rebuildSchedule(const std::vector<std::vector<std::vector<Op>>>& byStep, const std::vector<std::vector<std::vector<bool>>>& paired,
                                                const std::string& name, std::string& why, std::vector<std::string>& notes);

} // namespace stagewright
