// Reading whole files, and finding programs.
#pragma once

#include <string>

#include "schedules/base/result.h"

namespace stagewright {

Result<std::string> readFile(const std::string& path);
bool fileExists(const std::string& path);
bool isFolder(const std::string& path);
// A program of this installation: beside this one, else found on PATH; "" where it is not there.
std::string siblingProgram(const std::string& name);

} // namespace stagewright
