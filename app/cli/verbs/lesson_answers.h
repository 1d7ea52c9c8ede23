// What a learner hands in on the command line.
#pragma once

#include <string>
#include <vector>

#include "schedules/base/result.h"
#include "traces/lessons/handed_in.h"

namespace stagewright {

// "[ID=]FILE.csv", an order. Errors (Usage, Unreadable) name the file.
Result<void> readAnswer(const lessons::Lesson& lesson, const std::string& text, lessons::HandedIn& given);
// "ID=VALUE", an answer or a guess.
Result<void> readSaid(const lessons::Lesson& lesson, const std::string& text, lessons::Learner& learner);
template <typename Block>
std::vector<std::string> idsOf(const lessons::Lesson& lesson)
{
    std::vector<std::string> ids;
    for (const Block* one : lesson.all<Block>()) ids.push_back(one->id);
    return ids;
}

} // namespace stagewright
