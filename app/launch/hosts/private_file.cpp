#include "app/launch/hosts/private_file.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace stagewright {

namespace fs = std::filesystem;

Result<void> makePrivateFolder(const std::string& path)
{
    const fs::path folder = path;
    std::error_code problem;
    if (folder.empty() || fs::is_directory(folder, problem)) return {};
    if (auto made = makePrivateFolder(folder.parent_path().string()); !made) return made;
    if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return {};
    return fail(ErrorCode::Unreadable, fmt::format("folder {}: {}", folder.string(), std::strerror(errno)),
                "check its permissions");
}

std::string userFolder(const char* variable, const std::string& fallback)
{
    if (const char* given = std::getenv(variable); given && *given == '/') return given;
    const char* home = std::getenv("HOME");
    return std::string(home && *home == '/' ? home : "") + "/" + fallback;
}

Result<void> writePrivateFile(const std::string& path, const std::string& text)
{
    if (auto made = makePrivateFolder(fs::path(path).parent_path().string()); !made) return made;
    std::string part = path + ".XXXXXX";
    const int descriptor = ::mkostemp(part.data(), O_CLOEXEC); // mode 0600
    const auto refuse = [&](int why) {
        return fail(ErrorCode::Unreadable, fmt::format("file {}: {}", path, std::strerror(why)),
                    "check the folder's permissions and free space");
    };
    if (descriptor < 0) return refuse(errno);
    std::size_t written = 0;
    while (written < text.size()) {
        const ssize_t count = ::write(descriptor, text.data() + written, text.size() - written);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) break;
        written += static_cast<std::size_t>(count);
    }
    const bool good = written == text.size() && ::fsync(descriptor) == 0;
    const int why = errno;
    ::close(descriptor);
    if (good && std::rename(part.c_str(), path.c_str()) == 0) return {};
    const int last = good ? errno : why;
    ::unlink(part.c_str());
    return refuse(last);
}

} // namespace stagewright
