#include "faults/injected_faults.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <new>
#include <string_view>
#include <utility>

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace stagewright::faults {

namespace {

std::atomic<int> armed = -1; // a Place
std::atomic<bool> behind = false;
std::atomic<std::int64_t> wanted = 0, counted = 0;
std::atomic<bool> wasHit = false;
std::atomic<bool> logging = false;
std::atomic<std::int64_t> steps = 0;

std::array<char, 4096> folderName{};
constexpr std::size_t mostFiles = 1024;
std::array<std::atomic<bool>, mostFiles> ours{};
std::array<std::string*, mostFiles> names{}; // while logging
std::vector<FileCall>* calls = nullptr;
sqlite3_mem_methods plain{};

// Libraries that take memory in functions which can't say that there is none: the JSON library's destructors,
// simdjson's choice of an implementation, protozero's messages.
bool inLibrary()
{
    std::array<void*, 12> frames{};
    const int count = ::backtrace(frames.data(), static_cast<int>(frames.size()));
    for (int i = 0; i < count; ++i) {
        Dl_info about{};
        if (::dladdr(frames[static_cast<std::size_t>(i)], &about) == 0) continue;
        const std::string_view function = about.dli_sname != nullptr ? about.dli_sname : "",
                               file = about.dli_fname != nullptr ? about.dli_fname : "";
        for (const std::string_view one : {"json_value7destroy", "protozero"})
            if (function.find(one) != std::string_view::npos) return true;
        if (file.find("libsimdjson") != std::string_view::npos) return true;
    }
    return false;
}

bool fails(Place place)
{
    if (armed.load(std::memory_order_relaxed) != static_cast<int>(place)) return false;
    const std::int64_t number = ++counted;
    const std::int64_t at = wanted;
    if (at == 0 || (number != at && !(behind && number > at))) return false;
    // What unwinds has freed some.
    if (place == Place::Allocation && (std::uncaught_exceptions() > 0 || inLibrary())) return false;
    wasHit = true;
    return true;
}

// errno of the call that fails: the number chooses it.
bool callFails(std::initializer_list<int> problems)
{
    if (!fails(Place::FileCall)) return false;
    errno = problems.begin()[static_cast<std::size_t>(wanted) % problems.size()];
    return true;
}

bool below(const char* path)
{
    const std::size_t length = std::strlen(folderName.data());
    return length > 0 && std::strncmp(path, folderName.data(), length) == 0;
}

bool isOurs(int file)
{
    return file >= 0 && static_cast<std::size_t>(file) < mostFiles && ours[static_cast<std::size_t>(file)];
}

void note(FileCall::Kind kind, std::string path, std::int64_t at = 0, std::string bytes = {})
{
    if (logging) calls->push_back({kind, std::move(path), at, std::move(bytes), steps});
}

std::string nameOf(int file)
{
    const auto* name = names[static_cast<std::size_t>(file)];
    return name != nullptr ? *name : std::string();
}

int opened(const char* path, int flags, unsigned mode)
{
    const bool counts = below(path);
    if (counts && callFails({EMFILE, EACCES, ENOSPC})) return -1;
    const bool there = ::access(path, F_OK) == 0;
    const int file = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
    if (!counts || file < 0 || static_cast<std::size_t>(file) >= mostFiles) return file;
    ours[static_cast<std::size_t>(file)] = true;
    if (logging) {
        delete std::exchange(names[static_cast<std::size_t>(file)], new std::string(path));
        if (!there) note(FileCall::Kind::Create, path);
        if ((flags & O_TRUNC) != 0) note(FileCall::Kind::Truncate, path);
    }
    return file;
}

int synced(int file, long call)
{
    if (isOurs(file)) {
        if (callFails({EIO, ENOSPC})) return -1;
        if (logging) {
            const std::string name = nameOf(file);
            note(std::filesystem::is_directory(name) ? FileCall::Kind::SyncFolder : FileCall::Kind::Sync, name);
        }
        return 0; // the test's disk needs none
    }
    return static_cast<int>(::syscall(call, file));
}

void* sqliteMalloc(int size) { return fails(Place::SqliteAllocation) ? nullptr : plain.xMalloc(size); }

void* sqliteRealloc(void* at, int size) { return fails(Place::SqliteAllocation) ? nullptr : plain.xRealloc(at, size); }

} // namespace

void installInSqlite()
{
    if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &plain) != SQLITE_OK) std::abort();
    sqlite3_mem_methods own = plain;
    own.xMalloc = sqliteMalloc;
    own.xRealloc = sqliteRealloc;
    if (sqlite3_config(SQLITE_CONFIG_MALLOC, &own) != SQLITE_OK) std::abort();
}

void watchFolder(const std::string& folder)
{
    folderName.fill(0);
    std::memcpy(folderName.data(), folder.c_str(), std::min(folder.size(), folderName.size() - 1));
}

void arm(Place place, std::int64_t number, bool andAllBehind)
{
    wanted = number;
    behind = andAllBehind;
    counted = 0;
    wasHit = false;
    armed = static_cast<int>(place);
}

std::int64_t disarm()
{
    armed = -1;
    return counted;
}

bool hit() { return wasHit; }

void startLog()
{
    delete std::exchange(calls, new std::vector<FileCall>());
    steps = 0;
    logging = true;
}

void announce(std::int64_t number) { steps = number; }

std::vector<FileCall> takeLog()
{
    logging = false;
    return std::move(*calls);
}

void writeDisk(const std::vector<FileCall>& log, std::size_t count, const std::string& from, const std::string& folder,
               std::mt19937& random)
{
    struct File {
        std::string kept;                     // synced
        std::vector<const FileCall*> pending; // not
        bool there = true;
    };
    const auto apply = [](std::string& bytes, const FileCall& call, std::size_t begin, std::size_t end) {
        const auto at = static_cast<std::size_t>(call.at);
        if (call.kind == FileCall::Kind::Truncate) {
            bytes.resize(at);
            return;
        }
        if (bytes.size() < at + end) bytes.resize(at + end);
        std::memcpy(bytes.data() + at + begin, call.bytes.data() + begin, end - begin);
    };
    std::map<std::string, File> files;
    std::map<std::string, File> removed; // since their folder was synced
    for (std::size_t i = 0; i < count; ++i) {
        const FileCall& call = log[i];
        switch (call.kind) {
        case FileCall::Kind::Create: files[call.path] = {}; break;
        case FileCall::Kind::Write:
        case FileCall::Kind::Truncate: files[call.path].pending.push_back(&call); break;
        case FileCall::Kind::Sync: {
            File& file = files[call.path];
            for (const FileCall* each : file.pending) apply(file.kept, *each, 0, each->bytes.size());
            file.pending.clear();
            break;
        }
        case FileCall::Kind::Remove:
            removed[call.path] = files[call.path];
            files.erase(call.path);
            break;
        case FileCall::Kind::SyncFolder: removed.clear(); break;
        }
    }
    for (auto& [path, file] : removed)
        if (!files.contains(path) && random() % 2 == 0) files[path] = file;
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    for (auto& [path, file] : files) {
        if (path.ends_with("-shm") || path.ends_with("-lock")) continue; // of the processes that were there
        constexpr std::size_t sector = 512;
        std::string bytes = file.kept;
        auto pending = file.pending;
        const unsigned likely = static_cast<unsigned>(random() % 5); // none … all
        std::shuffle(pending.begin(), pending.end(), random);
        for (const FileCall* call : pending) {
            if (call->kind == FileCall::Kind::Truncate) {
                if (random() % 4 < likely) apply(bytes, *call, 0, 0);
                continue;
            }
            for (std::size_t begin = 0; begin < call->bytes.size();) {
                const std::size_t end = std::min(
                    call->bytes.size(), begin + sector - (static_cast<std::size_t>(call->at) + begin) % sector);
                if (random() % 4 < likely) apply(bytes, *call, begin, end);
                begin = end;
            }
        }
        std::ofstream(folder + path.substr(from.size()), std::ios::binary) << bytes;
    }
}

} // namespace stagewright::faults

namespace sf = stagewright::faults;

void* operator new(std::size_t size)
{
    if (!sf::fails(sf::Place::Allocation))
        if (void* at = std::malloc(size == 0 ? 1 : size)) return at;
    throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept // simdjson does not look at all it gets
{
    return std::malloc(size == 0 ? 1 : size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return std::malloc(size == 0 ? 1 : size); }
void* operator new[](std::size_t size) { return operator new(size); }
void operator delete(void* at) noexcept { std::free(at); }
void operator delete(void* at, std::size_t) noexcept { std::free(at); }
void operator delete[](void* at) noexcept // the sanitizers have their own, which expect their own new[]
{
    std::free(at);
}
void operator delete[](void* at, std::size_t) noexcept { std::free(at); }

extern "C" {

int open64(const char* path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    const unsigned mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, unsigned) : 0;
    va_end(arguments);
    return sf::opened(path, flags, mode);
}
int open(const char* path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    const unsigned mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, unsigned) : 0;
    va_end(arguments);
    return sf::opened(path, flags, mode);
}
int close(int file)
{
    if (sf::isOurs(file)) sf::ours[static_cast<std::size_t>(file)] = false;
    return static_cast<int>(::syscall(SYS_close, file));
}
ssize_t write(int file, const void* data, std::size_t size)
{
    if (sf::isOurs(file)) {
        if (sf::callFails({ENOSPC, EIO})) return -1;
        if (sf::logging)
            sf::note(sf::FileCall::Kind::Write, sf::nameOf(file), ::lseek(file, 0, SEEK_CUR),
                     std::string(static_cast<const char*>(data), size));
    }
    return ::syscall(SYS_write, file, data, size);
}
ssize_t pwrite64(int file, const void* data, std::size_t size, off64_t at)
{
    if (sf::isOurs(file)) {
        if (sf::callFails({ENOSPC, EIO})) return -1;
        if (sf::logging)
            sf::note(sf::FileCall::Kind::Write, sf::nameOf(file), at,
                     std::string(static_cast<const char*>(data), size));
    }
    return ::syscall(SYS_pwrite64, file, data, size, at);
}
ssize_t pread64(int file, void* data, std::size_t size, off64_t at)
{
    if (sf::isOurs(file) && sf::callFails({EIO})) return -1;
    return ::syscall(SYS_pread64, file, data, size, at);
}
int ftruncate64(int file, off64_t size) noexcept
{
    if (sf::isOurs(file)) {
        if (sf::callFails({EIO, ENOSPC})) return -1;
        if (sf::logging) sf::note(sf::FileCall::Kind::Truncate, sf::nameOf(file), size);
    }
    return static_cast<int>(::syscall(SYS_ftruncate, file, size));
}
int fsync(int file) { return sf::synced(file, SYS_fsync); }
int fdatasync(int file) { return sf::synced(file, SYS_fdatasync); }
int rename(const char* from, const char* to) noexcept
{
    if (sf::below(from) && sf::callFails({EACCES, ENOSPC, EIO})) return -1;
    return static_cast<int>(::syscall(SYS_rename, from, to));
}
int renameat2(int fromFolder, const char* from, int toFolder, const char* to, unsigned flags) noexcept
{
    if (sf::below(from) && sf::callFails({EINVAL, EACCES, ENOSPC, EIO})) return -1;
    return static_cast<int>(::syscall(SYS_renameat2, fromFolder, from, toFolder, to, flags));
}
int mkdir(const char* path, mode_t mode) noexcept
{
    if (sf::below(path) && sf::callFails({EACCES, ENOSPC})) return -1;
    return static_cast<int>(::syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}
char* mkdtemp(char* pattern) noexcept
{
    static const auto make = reinterpret_cast<char* (*)(char*)>(::dlsym(RTLD_NEXT, "mkdtemp"));
    if (sf::below(pattern) && sf::callFails({EACCES, ENOSPC})) return nullptr;
    return make(pattern);
}
int symlink(const char* to, const char* path) noexcept
{
    if (sf::below(path) && sf::callFails({EACCES, ENOSPC})) return -1;
    return static_cast<int>(::syscall(SYS_symlinkat, to, AT_FDCWD, path));
}
int memfd_create(const char* name, unsigned flags) noexcept // of no folder
{
    if (sf::callFails({EMFILE, ENOSYS})) return -1;
    return static_cast<int>(::syscall(SYS_memfd_create, name, flags));
}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" // there is a struct of that name
int flock(int file, int operation) noexcept
{
    if (sf::isOurs(file) && sf::callFails({ENOLCK, EOPNOTSUPP})) return -1;
    return static_cast<int>(::syscall(SYS_flock, file, operation));
}
#pragma GCC diagnostic pop
int unlink(const char* path) noexcept
{
    if (sf::below(path)) {
        if (sf::callFails({EACCES, EIO})) return -1;
        if (sf::logging) sf::note(sf::FileCall::Kind::Remove, path);
    }
    return static_cast<int>(::syscall(SYS_unlink, path));
}

} // extern "C"
