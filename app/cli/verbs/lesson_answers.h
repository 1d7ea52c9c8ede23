// What a learner handed in for a lesson, and its verdicts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/cli/text/lesson_text.h"
#include "schedules/base/result.h"
#include "traces/lessons/grading.h"

namespace stagewright {

struct HandedIn {
    std::map<std::string, Schedule> orders; // by check; "": of any
    lessons::Learner learner;
    std::string set;                             // settings of the canvas, "layers=4,4,3,1"
    std::map<std::string, std::string> settings; // likewise, by check
};

// "[ID=]FILE.csv", an order. Errors (Usage, Unreadable) name the file.
Result<void> readAnswer(const lessons::Lesson& lesson, const std::string& text, HandedIn& given);
// "ID=VALUE", an answer or a guess.
Result<void> readSaid(const lessons::Lesson& lesson, const std::string& text, lessons::Learner& learner);
// Every check that has an answer, every question that was answered, every run that is there.
std::vector<GradedBlock> gradeAll(const lessons::Lesson& lesson, const HandedIn& given);
// A file that names no check answers the checks that it passes: one passed check makes it right.
bool passed(const HandedIn& given, const std::vector<GradedBlock>& graded);

template <typename Block>
std::vector<std::string> idsOf(const lessons::Lesson& lesson)
{
    std::vector<std::string> ids;
    for (const Block* one : lesson.all<Block>()) ids.push_back(one->id);
    return ids;
}

} // namespace stagewright
