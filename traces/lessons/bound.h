// Proved lower bounds on a step's time, for the score of a lesson.
#pragma once

#include <string>

#include "schedules/cost_model.h"
#include "schedules/schedule.h"

namespace stagewright::lessons {

struct Bound {
    double value = 0; // in rank shares
    int rank = 0;     // whose work gives it
    std::string why;  // "rank 3 can't begin before 3, has 24 to do"
};

// Of every order with this schedule's placement, kinds and costs: some rank waits for its first forward (the forwards of the stages
// before, each a link away), then has all its work to do; where its last op is a full backward, that gradient still travels to the
// first stage. Times of one direction and of several copies alike; O(ops).
Bound boundOf(const Schedule& schedule, const CostModel& costs);

} // namespace stagewright::lessons
