// Where lessons are: the learner's own folder, the installation, and the lessons built into the program.
#pragma once

#include <string>
#include <vector>

#include "schedules/base/result.h"
#include "traces/lessons/lesson.h"

namespace stagewright::lessons {

// $XDG_DATA_HOME/stagewright (or ~/.local/share/stagewright): lessons/ of the learner's own, lessons.json with their
// progress.
std::string learnerFolder();

// Every lesson by number, then title: those of learnerFolder()/lessons and of the courses (course.h) that are folders
// in it, then of the installation beside this program (../share/stagewright/lessons), then the built-in ones; for each
// id the first. Unreadable files are reported in `faults`.
struct Library {
    std::vector<Lesson> lessons; // those of a course together, in its order, at the end
    std::vector<Error> faults;
    const Lesson* find(const std::string& idOrNumber) const; // "latency", "6", "06-latency"
};
Library loadLibrary();

// A path (with '/' or ".md"), else an id or number of the library. Errors list what exists.
Result<Lesson> findLesson(const std::string& nameOrPath);

struct BuiltInText {
    std::string_view name; // "06-latency.md"
    std::string_view text;
};
const std::vector<BuiltInText>& builtInLessons();
std::string_view builtInGlossary();
std::string_view builtInTemplate();              // of a lesson called NAME
std::string lessonTemplate(std::string_view id); // of that one

} // namespace stagewright::lessons
