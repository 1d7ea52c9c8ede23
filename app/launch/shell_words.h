// Quoting for the POSIX shell of another computer: the one place that does it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"

namespace stagewright {

// One word that the shell takes literally, whatever is in it.
std::string shellWord(std::string_view text);
std::string shellCommand(const std::vector<std::string>& words); // words with blanks between

// Words as a shell splits them, with its quotes and nothing else of it: no variable is replaced. None: a quote is open.
std::optional<std::vector<std::string>> shellSplit(std::string_view text);

// A folder as a user gives it: "~/x" is below the home folder over there, all else literal.
std::string shellPath(std::string_view folder);

// "": the text can be sent; else why not. Line breaks and other control characters can't.
std::string whyNotSent(std::string_view text);

// Text of a host as it may be shown (schedules/base/shown_text.h), of at most so many bytes.
std::string plainText(std::string_view text, std::size_t most = 2000);

} // namespace stagewright
