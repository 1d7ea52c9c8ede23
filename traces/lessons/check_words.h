// Checks of a lesson's prose. Internal to traces/lessons.
#pragma once

#include <functional>
#include <string>

#include "traces/lessons/check_lesson.h"

namespace stagewright::lessons {

// Sentences over 25 words (warning), figures typed into prose next to the name of a metric (warning), abbreviations
// missing in the glossary (note).
void checkWords(const Lesson& lesson, const std::function<void(Severity, FilePlace, std::string)>& tell);

} // namespace stagewright::lessons
