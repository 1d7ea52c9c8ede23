// Small files of the user's own: replaced whole, readable by nobody else.
#pragma once

#include <string>

#include "schedules/base/result.h"

namespace stagewright {

// $variable, else $HOME/fallback; "/" + fallback where there is no home. Relative values of the variable are ignored,
// as XDG says.
std::string userFolder(const char* variable, const std::string& fallback);
Result<void> makePrivateFolder(const std::string& folder); // and those above it, with mode 0700
// Folders on the way are created with mode 0700; the file has 0600 and is renamed into its place.
Result<void> writePrivateFile(const std::string& path, const std::string& text);

} // namespace stagewright
