// A lesson as text for the terminal, and verdicts as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "traces/lessons/check_lesson.h"
#include "traces/lessons/handed_in.h"
#include "traces/lessons/lesson.h"

namespace stagewright {

class Json;

struct LessonTextOptions {
    int columns = 100;
    bool colour = false;
    int hints = 0;          // so many of each check
    bool solutions = false; // "show me"
};
// The whole lesson with its numbers and pictures, and how to answer.
std::string lessonText(const lessons::Lesson& lesson, const LessonTextOptions& options);

std::string gradesText(const std::vector<lessons::GradedBlock>& graded, bool colour);
Json gradesJson(const lessons::Lesson& lesson, const std::vector<lessons::GradedBlock>& graded);
Json valueJson(const lessons::Value& value);

// "06-latency.md:52: fault (wrong): …"
std::string findingsText(const lessons::LessonReport& report, bool colour, bool notes);
Json reportJson(const lessons::LessonReport& report);

} // namespace stagewright
