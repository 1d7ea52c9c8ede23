// Proved lower bounds on a step's time, for a lesson's score.
#pragma once

#include <string>

#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"

namespace stagewright::lessons {

struct Bound {
    double value = 0; // in rank shares
    int rank = 0;     // whose work determines it
    std::string why;  // "rank 3 can't start before 3 and has 24 of work"
};

// Holds for every order with this schedule's placement, kinds and costs: some rank waits for its first forward (the
// forwards of the stages before, each a link away), then runs all its work; if its last op is a full backward, that
// gradient still travels to the first stage. Valid for one direction and for several copies; O(ops).
Bound boundOf(const Schedule& schedule, const CostModel& costs);

} // namespace stagewright::lessons
