// Course: a folder of lessons with an order. Its file course.txt has the title in the first line and then the lessons'
// file names, one a line, in order; a line that starts with # is a remark. Without it the files *.md count by name, and
// the folder's name is the title.
#pragma once

#include <string>
#include <vector>

#include "schedules/base/result.h"
#include "traces/lessons/lesson.h"

namespace stagewright::lessons {

struct Course {
    std::string title;
    std::vector<Lesson> lessons; // in order; each has the course's title and its place in it
};

bool isCourse(const std::string& folder); // a folder with a course.txt or lessons
// Errors (Unreadable) name the file: a lesson that is not there, a course without lessons, two lessons of one id, or
// what is wrong in a lesson.
Result<Course> readCourse(const std::string& folder);

} // namespace stagewright::lessons
