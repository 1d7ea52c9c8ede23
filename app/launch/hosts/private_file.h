// Small files of the user's own: read whole, replaced whole, readable by nobody else.
#pragma once

#include <string>

#include "schedules/base/result.h"

namespace stagewright {

// $variable, else $HOME/fallback; "/" + fallback where there is no home. Relative values of the variable are ignored, as XDG says.
std::string userFolder(const char* variable, const std::string& fallback);
// Folders on the way are created with mode 0700; the file has 0600 and is renamed into its place.
Result<void> writePrivateFile(const std::string& path, const std::string& text);
// "" where it is absent. Unreadable: not a file, more than `most` bytes, or the system's reason.
Result<std::string> readSmallFile(const std::string& path, std::size_t most = std::size_t{4} << 20);

} // namespace stagewright
