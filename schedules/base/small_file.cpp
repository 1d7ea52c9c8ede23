#include "schedules/base/small_file.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <fmt/core.h>

namespace stagewright {

Result<std::string> readSmallFile(const std::string& path, std::size_t most)
{
    constexpr int patience = 10'000; // ms
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0 && errno == ENOENT) return std::string();
    if (descriptor < 0)
        return fail(ErrorCode::Unreadable, fmt::format("file {}: {}", path, std::strerror(errno)),
                    "check its permissions");
    std::string text;
    std::array<char, 65536> bytes{};
    int why = 0;
    while (text.size() <= most) {
        const ssize_t count = ::read(descriptor, bytes.data(), bytes.size());
        if (count == 0) break;
        if (count > 0) {
            text.append(bytes.data(), static_cast<std::size_t>(count));
            continue;
        }
        if (errno == EINTR) continue;
        why = errno;
        pollfd writer{descriptor, POLLIN, 0};
        if (why != EAGAIN || ::poll(&writer, 1, patience) <= 0) break;
        why = 0;
    }
    ::close(descriptor);
    if (why == EAGAIN)
        return fail(ErrorCode::Unreadable, fmt::format("file {}: nothing came within {} s", path, patience / 1000),
                    "name a file");
    if (why != 0)
        return fail(ErrorCode::Unreadable, fmt::format("file {}: {}", path, std::strerror(why)),
                    "name a file that can be read");
    if (text.size() > most)
        return fail(ErrorCode::Unreadable, fmt::format("file {}: it has more than {} bytes", path, most),
                    "it is not a file of this program: name another, or move it away");
    return text;
}

} // namespace stagewright
