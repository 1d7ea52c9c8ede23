// A class's answers to a lesson or a course, as a teacher's table.
#pragma once

#include <string>
#include <vector>

#include "app/cli/session.h"
#include "traces/lessons/lesson.h"

namespace stagewright {

// In the folder FOLDER/alice.csv (an order), FOLDER/alice.CHECK.csv and FOLDER/alice.txt (lines ID=VALUE) are the
// answers of alice, or FOLDER/alice.json, the file lessons.json of her program, which also says when she answered. A
// row a goal, question and guess, answered or not, and a total a learner. Exit code 0: everybody passes what they
// answered.
Result<int> gradeClass(const std::vector<lessons::Lesson>& course, const std::string& folder, bool csv,
                       Session& session);

} // namespace stagewright
