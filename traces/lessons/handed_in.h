// What a learner handed in for a lesson, on the command line, in the window or kept in the progress file, and the
// verdicts on it: the one way in which answers are graded outside of a page that is being worked on.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "traces/lessons/grading.h"
#include "traces/lessons/progress_file.h"

namespace stagewright::lessons {

// One graded thing of a lesson.
struct GradedBlock {
    std::string id;
    std::string kind; // "check", "quiz", "run"
    Grade grade;
};

struct HandedIn {
    std::map<std::string, Schedule> orders; // by check; "": of any
    Learner learner;
    std::string set;                             // settings of the canvas, "layers=4,4,3,1"
    std::map<std::string, std::string> settings; // likewise, by check

    // A kept answer: what was said, and of a check its order and settings. Its error is that of the order.
    Result<void> take(const Lesson& lesson, const KeptAnswer& answer);
    const Schedule* orderOf(const std::string& check) const; // null: none
};

// Every check that has an answer, every question that was answered, every run that is there.
std::vector<GradedBlock> gradeAll(const Lesson& lesson, const HandedIn& given);
// A file that names no check answers the checks that it passes: one passed check makes it right.
bool passed(const HandedIn& given, const std::vector<GradedBlock>& graded);
// What of it is kept as progress: passes, answers that fail, runs that met all their goals. unixMs: now.
std::vector<KeptAnswer> keptOf(const Lesson& lesson, const HandedIn& given, const std::vector<GradedBlock>& graded,
                               std::int64_t unixMs);

} // namespace stagewright::lessons
