// The order that a job executed, as a schedule.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "schedules/model/schedule.h"
#include "traces/import/op_ranges.h"
#include "traces/import/rank_work.h"

namespace stagewright {

struct RebuiltSchedule {
    std::shared_ptr<const Schedule> schedule; // null: there is no op, or the order is not valid
    std::string recognised;                   // the library's name of it, "" if it is not in the library
    std::string why;                          // why there is none
};

// The order of a complete step: the first of those with the most ops. `work` by rank, as placeWork() gives it; stages
// are known. Steps that differ are noted.
RebuiltSchedule rebuildSchedule(const OpReading& ops, const std::vector<RankWork>& work, const std::string& name,
                                std::vector<std::string>& notes);

} // namespace stagewright
