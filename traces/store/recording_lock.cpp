#include "traces/store/recording_lock.h"

#include <cerrno>
#include <chrono>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "schedules/base/open_files.h"

namespace stagewright {

namespace {

bool isFile(int descriptor)
{
    struct stat about {};
    return ::fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode);
}

} // namespace

RecordingLock::RecordingLock(std::string runFile) : m_runFile(std::move(runFile)), m_path(m_runFile + "-lock") {}

RecordingLock::~RecordingLock()
{
    if (m_holds > 0) {
        m_holds = 1;
        release();
    }
}

Result<void> RecordingLock::acquire()
{
    if (m_holds > 0) {
        ++m_holds;
        return {};
    }
    for (int attempt = 0; attempt < 100; ++attempt) {
        const int descriptor = ::open(m_path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
        if (descriptor < 0 ? errno == ELOOP || errno == EISDIR || errno == ENXIO : !isFile(descriptor)) {
            if (descriptor >= 0) ::close(descriptor);
            return fail(ErrorCode::Unavailable,
                        fmt::format("file {}: its lock {} is not a file of its own, but a link, folder, pipe or device",
                                    m_runFile, m_path),
                        "remove it, or copy the run file elsewhere");
        }
        if (descriptor < 0) {
            if (auto full = tooManyOpenFiles(errno, "file " + m_runFile)) return tl::unexpected(std::move(*full));
            return fail(ErrorCode::Unreadable, "file " + m_runFile + ": its folder is not writable",
                        "check the folder's permissions, or copy the file");
        }
        if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
            const bool held = errno == EWOULDBLOCK;
            ::close(descriptor);
            if (held && attempt < 20) { // a reader asking whether it is held holds it for a moment
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
                continue;
            }
            if (held)
                return fail(ErrorCode::Unavailable, "file " + m_runFile + ": another program is recording into it",
                            "wait until the recording ends, or choose another file");
            return {}; // a file system without such locks: nothing guards the file
        }
        // The former holder may have removed the file between open and lock.
        struct stat locked {};
        struct stat present {};
        if (::fstat(descriptor, &locked) == 0 && ::stat(m_path.c_str(), &present) == 0 &&
            locked.st_ino == present.st_ino && locked.st_dev == present.st_dev) {
            m_descriptor = descriptor;
            m_holds = 1;
            return {};
        }
        ::close(descriptor);
    }
    return fail(ErrorCode::Unavailable, "file " + m_runFile + ": its lock is busy", "try again");
}

void RecordingLock::release()
{
    if (m_holds == 0 || --m_holds > 0) return;
    struct stat locked {};
    struct stat present {};
    if (::fstat(m_descriptor, &locked) == 0 && ::stat(m_path.c_str(), &present) == 0 &&
        locked.st_ino == present.st_ino && locked.st_dev == present.st_dev && locked.st_size == 0)
        ::unlink(m_path.c_str()); // not that of another process, nor what is not a lock
    ::close(m_descriptor);
    m_descriptor = -1;
}

bool RecordingLock::restore()
{
    if (m_descriptor < 0) return true; // a file system without locks
    struct stat locked {};
    struct stat present {};
    const bool there = ::stat(m_path.c_str(), &present) == 0;
    if (there && ::fstat(m_descriptor, &locked) == 0 && locked.st_ino == present.st_ino &&
        locked.st_dev == present.st_dev)
        return true;
    const int holds = m_holds, old = m_descriptor;
    m_holds = 0;
    const auto again = acquire();
    if (again) ::close(old);
    m_holds = holds;
    return again.has_value();
}

bool RecordingLock::heldElsewhere() const
{
    if (m_holds > 0) return false;
    const int descriptor = ::open(m_path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) return false;
    const bool held = isFile(descriptor) && ::flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    ::close(descriptor);
    return held;
}

} // namespace stagewright
