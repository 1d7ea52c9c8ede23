// Steps in which ranks found the order of their ops while they ran (schedules/execute/ready_order.h).
#pragma once

#include <memory>
#include <vector>

#include "profiler/record/rank_recorder.h"
#include "schedules/base/result.h"
#include "schedules/check/checked_schedule.h"

namespace stagewright {

// The schedule that ran: given's lists in the order in which their ops started, whose places become those of the
// events; `given` itself where that is the same. last: of the step before, returned where the order is as then; may be
// null. Invalid where no such schedule can run.
Result<std::shared_ptr<const CheckedSchedule>> inOrderOf(const std::shared_ptr<const CheckedSchedule>& given,
                                                         const std::shared_ptr<const CheckedSchedule>& last,
                                                         std::vector<std::vector<RecordedEvent>>& eventsByRank);

} // namespace stagewright
