// Reading and writing whole files.
#pragma once

#include <string>
#include <string_view>

#include "schedules/base/result.h"

namespace stagewright {

Result<std::string> readFile(const std::string& path);
// To a temporary name beside `path`, then renamed. "-" is stdout.
Result<void> writeFile(const std::string& path, std::string_view text);
bool fileExists(const std::string& path);
bool isFolder(const std::string& path);
// A program of this installation: beside this one, else found on PATH; "" where it is not there.
std::string siblingProgram(const std::string& name);

} // namespace stagewright
