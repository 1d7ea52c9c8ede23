// Wrong usage: a message that names the option, says what is accepted and the nearest name there is. And the checks that
// options share.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "schedules/base/result.h"

namespace stagewright {

// The error behind a failed parse; precondition: the exception asks for neither help nor version.
Error usageError(const CLI::App& app, const CLI::ParseError& error);

// The nearest of `names` to `text` by edit distance, "" where none is near.
std::string nearestName(const std::string& text, const std::vector<std::string>& names);

CLI::Validator wholeNumber(long long least, long long most);
CLI::Validator realNumber(double least, double most);
CLI::Validator oneOf(std::vector<std::string> names);

} // namespace stagewright
