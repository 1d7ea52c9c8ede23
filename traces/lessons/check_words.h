// What a lesson's prose is checked for. Internal to traces/lessons.
#pragma once

#include <functional>
#include <string>

#include "traces/lessons/check_lesson.h"

namespace stagewright::lessons {

// Sentences over 25 words (warning), figures typed into prose beside the word of a metric (warning), abbreviations that the glossary
// does not know (note).
void checkWords(const Lesson& lesson, const std::function<void(Severity, FilePlace, std::string)>& tell);

} // namespace stagewright::lessons
