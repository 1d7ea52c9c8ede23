// Files that are not traces, or of tools whose files are not read: what they are, and what to bring instead.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "schedules/base/result.h"

namespace stagewright {

// By how a file of JSON starts (uncompressed); nothing: it may be a trace. Without the file's name.
std::optional<Error> otherJsonOf(std::string_view head);
// Says what a file is that no format takes, with its name.
Error unknownFile(const std::string& path, std::string_view head);

} // namespace stagewright
