#include "traces/format/atomic_file.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schedules/base/folder.h"
#include "schedules/base/open_files.h"
#include "schedules/base/own_names.h"

namespace stagewright {

namespace {

constexpr std::string_view partEnding = ".part-";
std::atomic<int> direct = 0; // devices and pipes under way
static_assert(std::atomic<int>::is_always_lock_free);

tl::unexpected<Error> failure(const std::string& path, int problem)
{
    if (auto full = noRoomLeft(problem, "file " + path)) return tl::unexpected(std::move(*full));
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

// A name that no other export has, and nobody else's file.
std::string partName(const std::string& path)
{
    const std::size_t name = path.rfind('/') + 1;
    return path.substr(0, name) + newOwnName(path.substr(name).append(partEnding));
}

// Whether it is a database, or the log or journal of one, whatever its name says.
bool holdsDatabase(const std::string& path)
{
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return false;
    std::array<char, 16> bytes{};
    const ssize_t count = ::read(descriptor, bytes.data(), bytes.size());
    ::close(descriptor);
    const std::string_view text(bytes.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
    for (const std::string_view magic :
         {std::string_view("SQLite format 3\0", 16), std::string_view("\x37\x7f\x06\x82", 4),
          std::string_view("\x37\x7f\x06\x83", 4), std::string_view("\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 8)})
        if (text.starts_with(magic)) return true;
    return false;
}

bool isFileWithBytes(const std::string& path)
{
    struct stat found {};
    return ::stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode) && found.st_size > 0;
}

// Recorded runs are what nobody has a second time: a file that holds them, or belongs to one that does, is never
// replaced by something else.
Result<void> mayReplace(const std::string& path, const std::string& shown)
{
    constexpr const char* remedy = "choose another name, or remove it first";
    if (isFileWithBytes(path) && (path.ends_with(".stagewright") || holdsDatabase(path)))
        return fail(ErrorCode::Usage, "file " + shown + ": it is a run file or another database, and would be replaced",
                    remedy);
    for (const std::string_view ending : {"-wal", "-shm", "-journal", "-lock"}) {
        if (!path.ends_with(ending)) continue;
        const std::string database = path.substr(0, path.size() - ending.size());
        if (isFileWithBytes(database) && holdsDatabase(database))
            return fail(ErrorCode::Usage, "file " + shown + ": it would be taken for a part of " + database,
                        "choose another name");
    }
    return {};
}

// Locks what was just created; closes it where another export took it for one that was left, in the moment before.
bool isHeld(int descriptor, const std::string& name)
{
    struct stat there {};
    // a file system without locks: nobody can
    const bool locked = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (locked && ::stat(name.c_str(), &there) == 0) return true;
    ::close(descriptor);
    return false;
}

// A name is safe on the disk once its folder is. Where it can't be asked for that, the file is there all the same.
void keepNames(const std::string& path)
{
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return;
    static_cast<void>(::fsync(descriptor));
    ::close(descriptor);
}

// A new file beside the wanted one, locked while it is written; removed unless it was renamed. It has the mode of the
// file that it replaces, else what the umask leaves.
class TemporaryFile {
public:
    explicit TemporaryFile(const std::string& path)
    {
        if (isSpecial(path)) {
            m_special = true;
            ++direct;
            m_descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
            return;
        }
        removeLeftParts(path);
        do {
            m_name = partName(path);
            m_descriptor = ::open(m_name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        } while (m_descriptor < 0 ? errno == EEXIST : !isHeld(m_descriptor, m_name));
        m_exists = m_descriptor >= 0;
        struct stat there {};
        if (m_exists && ::stat(path.c_str(), &there) == 0 && S_ISREG(there.st_mode))
            static_cast<void>(::fchmod(m_descriptor, there.st_mode & 07777));
    }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    ~TemporaryFile()
    {
        if (m_descriptor >= 0) ::close(m_descriptor);
        if (m_special) --direct;
        if (m_exists) ::unlink(m_name.c_str());
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
        if (::fsync(m_descriptor) != 0 || ::rename(m_name.c_str(), path.c_str()) != 0) {
            m_problem = errno;
            return false;
        }
        m_exists = false;
        keepNames(path);
        return true;
    }

private:
    std::string m_name;
    int m_descriptor = -1;
    bool m_exists = false;
    bool m_special = false;
    int m_problem = 0;
};

} // namespace

void removeLeftParts(const std::string& path)
{
    namespace fs = std::filesystem;
    const fs::path whole(path);
    const std::string beginning = whole.filename().string().append(partEnding);
    const fs::path folder = whole.has_parent_path() ? whole.parent_path() : fs::path(".");
    for (const std::string& name : namesIn(folder)) {
        if (!isOwnName(name, beginning)) continue;
        const fs::path part = folder / name;
        const int descriptor = ::open(part.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (descriptor < 0) continue;
        struct stat found {};
        const bool own = ::fstat(descriptor, &found) == 0 && found.st_uid == ::geteuid() &&
                         (S_ISREG(found.st_mode) || S_ISDIR(found.st_mode));
        std::error_code ignored;
        if (own && ::flock(descriptor, LOCK_EX | LOCK_NB) == 0) fs::remove_all(part, ignored);
        ::close(descriptor);
    }
}

bool writingDirectly() noexcept { return direct > 0; }

Result<void> writeFileAtomically(const std::string& path, const std::function<Result<void>(const Sink&)>& write)
{
    const std::string real = target(path);
    if (auto may = mayReplace(real, path); !may) return may;
    TemporaryFile file(real);
    if (!file.isOpen()) {
        if (auto full = tooManyOpenFiles(errno, "file " + path)) return tl::unexpected(std::move(*full));
        return fail(ErrorCode::Unreadable, "file " + path + ": can't be created (" + std::strerror(errno) + ")",
                    "check that its folder exists and is writable");
    }
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

Error renamed(Error error, const std::string& temporary, const std::string& known)
{
    for (std::string* text : {&error.message, &error.remedy})
        if (const auto at = text->find(temporary); at != std::string::npos) text->replace(at, temporary.size(), known);
    return error;
}

PartFolder::PartFolder(const std::string& path)
{
    removeLeftParts(path);
    for (;;) {
        m_path = partName(path);
        if (::mkdir(m_path.c_str(), 0777) != 0) {
            if (errno == EEXIST) continue;
            m_problem = errno;
            break;
        }
        m_lock = ::open(m_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        // a umask may forbid reading it: then without a lock
        if (m_lock < 0 ? errno == EACCES : isHeld(m_lock, m_path)) return;
        // another program may have taken it for one that was left
        if (m_lock < 0 && errno != ENOENT) {
            m_problem = errno;
            ::rmdir(m_path.c_str());
            break;
        }
    }
    m_path.clear();
}

PartFolder::~PartFolder()
{
    if (m_lock >= 0) ::close(m_lock); // first: removing takes a descriptor, too
    try {
        std::error_code problem;
        if (!m_path.empty()) std::filesystem::remove_all(m_path, problem);
    } catch (const std::bad_alloc&) { // it is left to the next one
    }
}

bool PartFolder::renameTo(const std::string& path)
{
    if (::rename(m_path.c_str(), path.c_str()) != 0) return false;
    m_path.clear();
    return true;
}

Result<void> writeFolderAtomically(const std::string& given,
                                   const std::function<Result<void>(const std::string& folder)>& write)
{
    namespace fs = std::filesystem;
    std::string path = given;
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    std::error_code code;
    const bool there = fs::exists(fs::symlink_status(path, code));
    if (there && !fs::is_directory(path, code))
        return fail(ErrorCode::Unreadable, "folder " + path + ": a file with that name exists", "choose another name");
    if (there && !fs::is_empty(path, code))
        return fail(ErrorCode::Unreadable, "folder " + path + ": it is not empty", "choose another name, or empty it");
    PartFolder part(path);
    if (part.problem() != 0)
        return fail(ErrorCode::Unreadable,
                    "folder " + path + ": can't be created (" + std::strerror(part.problem()) + ")",
                    "check that its parent folder exists and is writable");
    auto written = write(part.path());
    struct stat before {};
    if (written && there && ::stat(path.c_str(), &before) == 0)
        static_cast<void>(::chmod(part.path().c_str(), before.st_mode & 07777));
    if (written && !part.renameTo(path)) written = failure(path, errno); // replaces an empty folder
    return written;
}

} // namespace stagewright
