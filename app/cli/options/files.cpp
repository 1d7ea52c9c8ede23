#include "app/cli/options/files.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>

#include <unistd.h>

#include <fmt/core.h>

#include "app/launch/program_path.h"

namespace stagewright {

namespace fs = std::filesystem;

Result<TextFile> TextFile::open(const std::string& path)
{
    TextFile file(path == "-" ? "stdin" : path);
    if (path == "-") return file;
    if (isFolder(path))
        return fail(ErrorCode::Unreadable, fmt::format("{} is a folder, not a file", path), "name a file in it");
    errno = 0;
    file.m_file.open(path, std::ios::binary);
    if (!file.m_file)
        return fail(ErrorCode::Unreadable, fmt::format("{} can't be opened: {}", path, std::strerror(errno)),
                    "check the name and the permission");
    return file;
}

std::size_t TextFile::read(char* to, std::size_t size)
{
    if (m_problem) return 0;
    if (m_read >= mostTextBytes) {
        m_problem = Error{ErrorCode::Unreadable,
                          fmt::format("{} is too large: more than {} bytes, but a text file may have at most {}",
                                      m_path, m_read, mostTextBytes),
                          "check that it is the file you mean; larger runs are kept in run files"};
        return 0;
    }
    std::istream& in = m_file.is_open() ? m_file : std::cin;
    errno = 0;
    in.read(to, static_cast<std::streamsize>(size));
    const auto got = static_cast<std::size_t>(in.gcount());
    if (in.bad())
        m_problem = Error{ErrorCode::Unreadable, fmt::format("{} can't be read: {}", m_path, std::strerror(errno)), {}};
    // A device or a binary file is refused before it is read to its end.
    if (const void* zero = std::memchr(to, 0, got))
        m_problem = Error{ErrorCode::Unreadable,
                          fmt::format("{} is not text: byte {} is zero", m_path,
                                      m_read + static_cast<std::size_t>(static_cast<const char*>(zero) - to)),
                          "name a text file"};
    m_read += got;
    return m_problem ? 0 : got;
}

Result<std::string> readFile(const std::string& path)
{
    STAGEWRIGHT_TRY(auto file, TextFile::open(path));
    std::string text;
    for (constexpr std::size_t part = std::size_t{1} << 20;;) {
        const std::size_t before = text.size();
        text.resize(before + part);
        const std::size_t got = file.read(text.data() + before, part);
        text.resize(before + got);
        if (file.problem()) return tl::unexpected(*file.problem());
        if (got == 0) return text;
    }
}

Result<Schedule> readCsvFile(const std::string& path, const CsvOptions& options)
{
    STAGEWRIGHT_TRY(auto file, TextFile::open(path));
    const std::string shown = path == "-" ? "stdin" : path;
    auto schedule = readScheduleCsv([&](char* to, std::size_t size) { return file.read(to, size); }, options,
                                    shown.substr(shown.rfind('/') + 1));
    if (file.problem()) return tl::unexpected(*file.problem());
    if (!schedule) return tl::unexpected(std::move(schedule.error()).with(shown));
    return schedule;
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
