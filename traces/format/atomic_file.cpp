#include "traces/format/atomic_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace stagewright {

namespace {

tl::unexpected<Error> failure(const std::string& path, int problem)
{
    const bool full = problem == ENOSPC || problem == EDQUOT || problem == EFBIG;
    if (full) return fail(ErrorCode::Failed, "file " + path + ": the disk is full", "free some space or choose another location");
    return fail(ErrorCode::Failed, "file " + path + ": " + std::strerror(problem), "choose another location");
}

// A device, pipe or the like: written directly, never replaced.
bool isSpecial(const std::string& path)
{
    struct stat found {};
    return ::stat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode);
}

// Where a link leads, so that the file is replaced and not the link.
std::string target(const std::string& path)
{
    std::error_code code;
    const auto real = std::filesystem::canonical(path, code);
    return code ? path : real.string();
}

// A new file beside the wanted one; removed unless it was renamed.
class TemporaryFile {
public:
    explicit TemporaryFile(const std::string& path)
    {
        if (isSpecial(path)) {
            m_special = true;
            m_descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
            return;
        }
        const std::string pattern = path + ".part-XXXXXX";
        m_name.assign(pattern.begin(), pattern.end());
        m_name.push_back('\0');
        m_descriptor = ::mkstemp(m_name.data());
        m_exists = m_descriptor >= 0;
    }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    ~TemporaryFile()
    {
        if (m_descriptor >= 0) ::close(m_descriptor);
        if (m_exists) ::unlink(m_name.data());
    }

    bool isOpen() const { return m_descriptor >= 0; }

    bool write(std::string_view bytes)
    {
        while (!bytes.empty()) {
            const ssize_t written = ::write(m_descriptor, bytes.data(), bytes.size());
            if (written < 0 && errno == EINTR) continue;
            if (written <= 0) {
                m_problem = written < 0 ? errno : EIO;
                return false;
            }
            bytes.remove_prefix(static_cast<std::size_t>(written));
        }
        return true;
    }

    int problem() const { return m_problem; } // errno of a failed write, 0: none

    bool renameTo(const std::string& path)
    {
        if (m_special) return true;
        const bool kept = ::fchmod(m_descriptor, 0644) == 0 && ::fsync(m_descriptor) == 0;
        if (!kept || ::rename(m_name.data(), path.c_str()) != 0) {
            m_problem = errno;
            return false;
        }
        m_exists = false;
        return true;
    }

private:
    std::vector<char> m_name;
    int m_descriptor = -1;
    bool m_exists = false;
    bool m_special = false;
    int m_problem = 0;
};

} // namespace

Result<void> writeFileAtomically(const std::string& path, const std::function<Result<void>(const Sink&)>& write)
{
    const std::string real = target(path);
    TemporaryFile file(real);
    if (!file.isOpen())
        return fail(ErrorCode::Unreadable, "file " + path + ": can't be created (" + std::strerror(errno) + ")",
                    "check that its folder exists and is writable");
    auto written = write([&file](std::string_view bytes) { return file.write(bytes); });
    if (file.problem() != 0) return failure(path, file.problem());
    if (!written) return written;
    if (!file.renameTo(real)) return failure(path, file.problem());
    return {};
}

Result<void> writeFileAtomically(const std::string& path, std::string_view text)
{
    return writeFileAtomically(path, [text](const Sink& out) -> Result<void> {
        out(text); // the file reports a failed write
        return {};
    });
}

Result<void> writeFolderAtomically(const std::string& given, const std::function<Result<void>(const std::string& folder)>& write)
{
    namespace fs = std::filesystem;
    std::string path = given;
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    std::error_code code;
    const bool there = fs::exists(fs::symlink_status(path, code));
    if (there && !fs::is_directory(path, code)) return fail(ErrorCode::Unreadable, "folder " + path + ": a file with that name exists", "choose another name");
    if (there && !fs::is_empty(path, code)) return fail(ErrorCode::Unreadable, "folder " + path + ": it is not empty", "choose another name, or empty it");
    std::string pattern = path + ".part-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr)
        return fail(ErrorCode::Unreadable, "folder " + path + ": can't be created (" + std::strerror(errno) + ")", "check that its parent folder exists and is writable");
    auto written = write(pattern);
    if (written) {
        ::chmod(pattern.c_str(), 0755);
        if (::rename(pattern.c_str(), path.c_str()) != 0) written = failure(path, errno); // replaces an empty folder
    }
    if (!written) fs::remove_all(pattern, code);
    return written;
}

} // namespace stagewright
