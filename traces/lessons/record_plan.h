// How a lesson's real run is recorded: its setup, and the orders it needs as files.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "schedules/base/result.h"
#include "traces/lessons/grading.h"
#include "traces/lessons/lesson.h"

namespace stagewright::lessons {

struct RecordPlan {
    Setup setup; // of `stagewright record`
    // as the block names them, in the order of the recorded runs
    std::vector<std::string> schedules;
    // name and text of the CSVs that the setup names, in `folder`
    std::vector<std::pair<std::string, std::string>> files;
};

// folder: where the caller writes the files. answers: the learner's orders by check, "mine" the one on the canvas; if
// there is none, the check's solution. Defaults are the lesson's shape and a model of 8 layers that takes about a
// second per step; brief: two measured steps.
Result<RecordPlan> recordPlan(const Lesson& lesson, const RunBlock& run, const std::string& folder,
                              const std::map<std::string, Schedule>& answers = {}, bool brief = false);

} // namespace stagewright::lessons
