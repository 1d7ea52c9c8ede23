// Reading whole files, and finding programs.
#pragma once

#include <cstddef>
#include <string>

#include "schedules/base/result.h"

namespace stagewright {

inline constexpr std::size_t mostTextBytes = std::size_t{512} << 20; // a CSV of 2,048 ranks and 16.8 million ops has 150 MB

// A whole text, from a file or a pipe. An Error (Unreadable): a zero byte in it, or more than mostTextBytes.
Result<std::string> readFile(const std::string& path);
bool fileExists(const std::string& path);
bool isFolder(const std::string& path);
// A program of this installation: next to this one, else found on PATH; "" if there is none.
std::string siblingProgram(const std::string& name);

} // namespace stagewright
