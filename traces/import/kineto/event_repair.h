// JSON events as profilers wrote them that are not valid JSON: single backslashes of Windows paths, control characters,
// bytes that are not UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace stagewright {

// The event with its strings as they were meant: in a string with a backslash that escapes nothing, every single
// backslash is one of a path. Control characters become blanks, bytes that are not UTF-8 question marks.
std::string repairedEvent(std::string_view json);

// Whether the text between a string's quotes is a path of Windows with single backslashes that happen to be escapes,
// such as "C:\temp\new.py(7): forward".
bool isPathOfEscapes(std::string_view raw);

} // namespace stagewright
