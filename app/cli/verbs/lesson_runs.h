// Real runs of a lesson: recorded by this program in a child process, as the window does it, and read back.
#pragma once

#include <map>
#include <string>

#include "traces/lessons/grading.h"
#include "traces/lessons/lesson.h"

namespace stagewright {

class Session;

// Records every run block (brief: two steps each) into a file of a temporary folder; failures go to Learner::failures.
// Blocks that need the wall clock are skipped unless two cores are idle.
Result<lessons::Learner> recordLesson(const lessons::Lesson& lesson, const std::map<std::string, Schedule>& answers,
                                      bool brief, Session& session);

// The runs of a file that the learner recorded, named for the blocks they fit: by schedule, in the order of the blocks.
Result<void> readLessonRuns(const lessons::Lesson& lesson, const std::string& file, lessons::Learner& learner);

} // namespace stagewright
