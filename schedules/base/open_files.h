// Limits of files: how many may be open, how large they may become, and disks that are full.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "schedules/base/result.h"

namespace stagewright {

// `what` with the limit and how to raise it, if that is the problem (an errno); else nothing.
std::optional<Error> tooManyOpenFiles(int problem, const std::string& what);
// The error of a file that could not be written for want of room: a full disk, a quota, a limit of sizes; nothing:
// `problem` is another. Failed.
std::optional<Error> noRoomLeft(int problem, const std::string& what);
// How large this program's files may become, in bytes; nothing: any size.
std::optional<std::uint64_t> largestFile();

} // namespace stagewright
