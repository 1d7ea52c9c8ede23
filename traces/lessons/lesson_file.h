// Reading a lesson file: front matter, headings, prose, typed fenced blocks (docs/lessons/README.md). Any other fence
// stays prose.
#pragma once

#include <string>
#include <string_view>

#include "schedules/base/result.h"
#include "traces/lessons/lesson.h"

namespace stagewright::lessons {

// path: for messages, and the lesson's number ("06-latency.md"). Errors (Unreadable) say "path:line:column: what is
// wrong" and a remedy. Files over 1 MiB are refused. Checks beyond the one file (predecessors, schedules) are in
// lessons::checkLesson.
Result<Lesson> readLesson(std::string_view text, const std::string& path);

// "say {{makespan}}" → words and expressions. at: of its first character.
Result<Text> parseText(std::string_view text, FilePlace at);

} // namespace stagewright::lessons
