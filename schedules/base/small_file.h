// Small files that are read whole.
#pragma once

#include <string>

#include "schedules/base/result.h"

namespace stagewright {

// "" where it is absent. Unreadable: not a file, more than `most` bytes, or the system's reason. A pipe is read to its
// end, and waited for 10 s at most.
Result<std::string> readSmallFile(const std::string& path, std::size_t most = std::size_t{4} << 20);

} // namespace stagewright
