// The start of a lesson of one's own.
#pragma once

#include <string>

namespace stagewright::lessons {

// A commented template of a lesson with that id: it reads without error and passes its check.
std::string lessonTemplate(const std::string& id);

} // namespace stagewright::lessons
