#include "app/launch/hosts/private_file.h"

#include <array>
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

namespace {

Result<void> makeFolders(const fs::path& folder)
{
    std::error_code problem;
    if (folder.empty() || fs::is_directory(folder, problem)) return {};
    if (auto made = makeFolders(folder.parent_path()); !made) return made;
    if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return {};
    return fail(ErrorCode::Unreadable, fmt::format("folder {}: {}", folder.string(), std::strerror(errno)), "check its permissions");
}

} // namespace

std::string userFolder(const char* variable, const std::string& fallback)
{
    if (const char* given = std::getenv(variable); given && *given == '/') return given;
    const char* home = std::getenv("HOME");
    return std::string(home && *home == '/' ? home : "") + "/" + fallback;
}

Result<void> writePrivateFile(const std::string& path, const std::string& text)
{
    if (auto made = makeFolders(fs::path(path).parent_path()); !made) return made;
    std::string part = path + ".XXXXXX";
    const int descriptor = ::mkostemp(part.data(), O_CLOEXEC); // mode 0600
    const auto refuse = [&](int why) { return fail(ErrorCode::Unreadable, fmt::format("file {}: {}", path, std::strerror(why)), "check the folder's permissions and free space"); };
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

Result<std::string> readSmallFile(const std::string& path, std::size_t most)
{
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0 && errno == ENOENT) return std::string();
    if (descriptor < 0) return fail(ErrorCode::Unreadable, fmt::format("file {}: {}", path, std::strerror(errno)), "check its permissions");
    std::string text;
    std::array<char, 65536> bytes{};
    ssize_t count = 0;
    while ((count = ::read(descriptor, bytes.data(), bytes.size())) > 0 && text.size() <= most) text.append(bytes.data(), static_cast<std::size_t>(count));
    const int why = errno;
    ::close(descriptor);
    if (count < 0) return fail(ErrorCode::Unreadable, fmt::format("file {}: {}", path, std::strerror(why)));
    if (text.size() > most) return fail(ErrorCode::Unreadable, fmt::format("file {}: it has more than {} bytes", path, most), "it is not a file of this program; move it away");
    return text;
}

} // namespace stagewright
