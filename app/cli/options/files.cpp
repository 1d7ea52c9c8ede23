#include "app/cli/options/files.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <unistd.h>

#include <fmt/core.h>

#include "app/launch/program_path.h"

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
    std::string text;
    constexpr std::size_t chunk = std::size_t{1} << 20;
    while (in) {
        const std::size_t before = text.size();
        if (before >= mostTextBytes)
            return fail(ErrorCode::Unreadable, fmt::format("{} is too large: more than {} bytes, but a text file may have at most {}", path, before, mostTextBytes),
                        "check that it is the file you mean; larger runs are kept in run files");
        text.resize(before + chunk);
        in.read(text.data() + before, static_cast<std::streamsize>(chunk));
        text.resize(before + static_cast<std::size_t>(in.gcount()));
        // A device or a binary file is refused before it is read to its end.
        if (const std::size_t zero = text.find('\0', before); zero != std::string::npos)
            return fail(ErrorCode::Unreadable, fmt::format("{} is not text: byte {} is zero", path, zero), "name a text file");
    }
    if (in.bad()) return fail(ErrorCode::Unreadable, fmt::format("{} can't be read: {}", path, std::strerror(errno)));
    return text;
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
        std::string beside = (self.parent_path() / name).string();
        if (access(beside.c_str(), X_OK) == 0) return beside;
    }
    return programOnPath(name);
}

} // namespace stagewright
