#include "schedules/base/change_lock.h"

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fmt/core.h>

namespace stagewright {

Result<ChangeLock> ChangeLock::take(const std::string& file)
{
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::seconds patience{10};
    const std::filesystem::path folder = std::filesystem::path(file).parent_path();
    const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return ChangeLock(-1);
    for (const auto begin = Clock::now(); ::flock(descriptor, LOCK_EX | LOCK_NB) != 0;) {
        if (errno != EWOULDBLOCK && errno != EINTR) break; // a file system without locks
        if (Clock::now() - begin > patience) {
            ::close(descriptor);
            return fail(ErrorCode::Unavailable,
                        fmt::format("file {}: another program has been changing it for {} s", file, patience.count()),
                        "end other programs of Stagewright, and try again");
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return ChangeLock(descriptor);
}

ChangeLock::ChangeLock(ChangeLock&& other) noexcept : m_descriptor(std::exchange(other.m_descriptor, -1)) {}

ChangeLock::~ChangeLock()
{
    if (m_descriptor >= 0) ::close(m_descriptor);
}

} // namespace stagewright
