#include "schedules/base/open_files.h"

#include <cerrno>

#include <sys/resource.h>

#include <fmt/core.h>

namespace stagewright {

std::optional<Error> tooManyOpenFiles(int problem, const std::string& what)
{
    constexpr rlim_t enough = 1024;
    if (problem == ENFILE)
        return Error{ErrorCode::Unavailable, what + ": too many files are open on this computer",
                     "close other programs, and try again"};
    if (problem != EMFILE) return std::nullopt;
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const rlim_t wanted = limit.rlim_cur < enough ? enough : limit.rlim_cur * 2;
    return Error{ErrorCode::Unavailable,
                 fmt::format("{}: too many open files; this program may have {}", what, limit.rlim_cur),
                 fmt::format("raise the limit: ulimit -n {}", wanted)};
}

std::optional<Error> noRoomLeft(int problem, const std::string& what)
{
    switch (problem) {
    case ENOSPC:
        return Error{ErrorCode::Failed, what + ": the disk is full", "free some space, or choose another location"};
    case EDQUOT:
        return Error{ErrorCode::Failed, what + ": the quota of disk space is used up",
                     "free some space, or choose a file on another disk"};
    case EFBIG:
        return Error{ErrorCode::Failed, what + ": it may not become larger", "raise the limit: ulimit -f unlimited"};
    default: return std::nullopt;
    }
}

std::optional<std::uint64_t> largestFile()
{
    rlimit limit{};
    if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
    return limit.rlim_cur;
}

} // namespace stagewright
