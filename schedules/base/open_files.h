// Files that can't be opened because the program has too many open.
#pragma once

#include <optional>
#include <string>

#include "schedules/base/result.h"

namespace stagewright {

// `what` with the limit and how to raise it, if that is the problem (an errno); else nothing.
std::optional<Error> tooManyOpenFiles(int problem, const std::string& what);

} // namespace stagewright
