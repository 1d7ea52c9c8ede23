#include "app/cli/files.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <unistd.h>

#include <fmt/core.h>

namespace stagewright {

namespace fs = std::filesystem;

Result<std::string> readFile(const std::string& path)
{
    if (isFolder(path))
        return fail(ErrorCode::Unreadable, fmt::format("{} is a folder, not a file", path), "name a file in it");
    errno = 0;
    std::ifstream in(path, std::ios::binary);
    if (!in)
        return fail(ErrorCode::Unreadable, fmt::format("{} can't be opened: {}", path, std::strerror(errno)),
                    "check the name and the permission");
    std::ostringstream text;
    text << in.rdbuf();
    if (in.bad()) return fail(ErrorCode::Unreadable, fmt::format("{} can't be read: {}", path, std::strerror(errno)));
    return text.str();
}

Result<void> writeFile(const std::string& path, std::string_view text)
{
    const std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
    errno = 0;
    std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
    if (out) {
        out.write(text.data(), static_cast<std::streamsize>(text.size()));
        out.close();
    }
    if (!out) {
        const int reason = errno;
        std::error_code ignored;
        fs::remove(temporary, ignored);
        return fail(ErrorCode::Failed, fmt::format("{} can't be written: {}", path, std::strerror(reason)),
                    "check the folder, its permission and the free space");
    }
    std::error_code code;
    fs::rename(temporary, path, code);
    if (code) {
        std::error_code ignored;
        fs::remove(temporary, ignored);
        return fail(ErrorCode::Failed, fmt::format("{} can't be replaced: {}", path, code.message()));
    }
    return {};
}

bool fileExists(const std::string& path)
{
    std::error_code code;
    return fs::exists(path, code);
}

bool isFolder(const std::string& path)
{
    std::error_code code;
    return fs::is_directory(path, code);
}

std::string siblingProgram(const std::string& name)
{
    std::error_code code;
    const fs::path self = fs::read_symlink("/proc/self/exe", code);
    if (!code) {
        const std::string beside = (self.parent_path() / name).string();
        if (access(beside.c_str(), X_OK) == 0) return beside;
    }
    const char* path = std::getenv("PATH");
    std::istringstream folders(path ? path : "");
    for (std::string folder; std::getline(folders, folder, ':');) {
        const std::string candidate = (fs::path(folder.empty() ? "." : folder) / name).string();
        if (access(candidate.c_str(), X_OK) == 0) return candidate;
    }
    return {};
}

} // namespace stagewright
