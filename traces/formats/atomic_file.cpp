#include "traces/formats/atomic_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

namespace stagewright {

namespace {

tl::unexpected<Error> failure(const std::string& path, int problem)
{
    const bool full = problem == ENOSPC || problem == EDQUOT || problem == EFBIG;
    if (full) return fail(ErrorCode::Failed, "file " + path + ": the disk is full", "free some space or choose another place");
    return fail(ErrorCode::Failed, "file " + path + ": " + std::strerror(problem), "choose another place");
}

// A new file beside the wanted one; removed unless it was renamed.
class TemporaryFile {
public:
    explicit TemporaryFile(const std::string& path)
    {
        const std::string pattern = path + ".part-XXXXXX";
        m_name.assign(pattern.begin(), pattern.end());
        m_name.push_back('\0');
        m_descriptor = ::mkstemp(m_name.data());
    }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    ~TemporaryFile()
    {
        if (m_descriptor >= 0) ::close(m_descriptor);
        if (m_exists) ::unlink(m_name.data());
    }

    bool isOpen() { return m_exists = m_descriptor >= 0; }

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
    int m_problem = 0;
};

} // namespace

Result<void> writeFileAtomically(const std::string& path, const std::function<Result<void>(const Sink&)>& write)
{
    TemporaryFile file(path);
    if (!file.isOpen())
        return fail(ErrorCode::Unreadable, "file " + path + ": can't be made (" + std::strerror(errno) + ")",
                    "check that its folder exists and may be written");
    const auto written = write([&file](std::string_view bytes) { return file.write(bytes); });
    if (file.problem() != 0) return failure(path, file.problem());
    if (!written) return written;
    if (!file.renameTo(path)) return failure(path, file.problem());
    return {};
}

} // namespace stagewright
