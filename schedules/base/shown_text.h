// Text as it may be shown to a person. Names and notes come from files and from other computers: their control
// characters would steer a terminal, and marks of direction would show a name that is not the one in the file. Such
// characters are written as escapes.
#pragma once

#include <string>
#include <string_view>

namespace stagewright {

// UTF-8 without control characters but line breaks and tabs: U+001B is "\x1b", U+0085 "\u0085", a byte that is not
// UTF-8 "\xff"; marks of direction (U+202E and its like) and separators of lines and paragraphs likewise.
std::string shownText(std::string_view text);

// A colour or style of this program's own, "31" for red, "0" for plain again: no file can hold it, as it has a number
// of this process in it. For text that goes through forTerminal().
std::string colourCode(std::string_view attributes);

// As shownText(); the program's own colours become those of a terminal, or nothing.
std::string forTerminal(std::string_view text, bool colour);

} // namespace stagewright
