#include "traces/store/guarded_files.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace stagewright {

namespace {

enum class FileKind : std::uint8_t {
    Main,
    Journal,
    Log,
    Temporary,
    Other,
};

// SQLite's own file follows it in memory.
struct GuardedFile {
    sqlite3_file base;
    sqlite3_file* real;
    FileKind kind;
    GuardedFile* main;   // of a journal or log: the file it is beside
    GuardedFile* next;   // of all main files
    const char* name;    // of a main file
    std::uint32_t stamp; // of a main file that is not written yet: its journal's
    bool unsynced;       // of a main file: marks were written since it was synced
    std::int64_t bytes;  // of a temporary file
};

constexpr std::int64_t marksAt = 72, databaseHeader = 100;
constexpr std::size_t marksBytes = 16;
constexpr int logHead = 32;
constexpr std::size_t tagAt = 28; // in the first sector of a journal, behind SQLite's header
constexpr std::array<unsigned char, 8> journalMagic{0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
constexpr std::array<unsigned char, 4> tagMagic{'S', 'W', 'j', '1'};
constexpr std::string_view journalSuffix = "-journal", logSuffix = "-wal";

std::mutex mainFilesMutex;
GuardedFile* mainFiles = nullptr;
std::atomic<std::int64_t> temporaryBytes = 0, mostTemporaryBytes = leastTemporaryBytes;
thread_local int unlimited = 0;
thread_local bool wasFull = false;
thread_local int problemOfWrite = 0;

GuardedFile* guarded(sqlite3_file* file) { return reinterpret_cast<GuardedFile*>(file); }

sqlite3_file* realOf(sqlite3_file* file) { return guarded(file)->real; }

sqlite3_vfs* realFiles(sqlite3_vfs* files) { return static_cast<sqlite3_vfs*>(files->pAppData); }

std::uint32_t numberIn(const unsigned char* bytes) // high byte first
{
    return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
}

void putMark(unsigned char* bytes, std::uint32_t value)
{
    for (int i = 0; i < 4; ++i) bytes[i] = static_cast<unsigned char>(value >> (24 - 8 * i));
}

struct Header {
    int problem = SQLITE_OK;
    bool blank = false; // the power was lost while its first pages were written
    bool there = false; // the file is not empty
    bool wal = false;
    std::array<std::uint32_t, 2> journals{}; // marks of the last one and the one before
    std::array<std::uint32_t, 2> logs{};
};

Header headerOf(sqlite3_file* real)
{
    std::array<unsigned char, databaseHeader> bytes{};
    Header header;
    if (const int code = real->pMethods->xRead(real, bytes.data(), databaseHeader, 0); code != SQLITE_OK) {
        header.problem = code == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : code;
        return header;
    }
    header.there = true;
    header.blank = std::all_of(bytes.begin(), bytes.begin() + 16, [](unsigned char byte) { return byte == 0; });
    header.wal = bytes[18] == 2;
    for (std::size_t i = 0; i < 2; ++i) {
        header.journals[i] = numberIn(&bytes[marksAt + 4 * i]);
        header.logs[i] = numberIn(&bytes[marksAt + 8 + 4 * i]);
    }
    return header;
}

int putMarks(GuardedFile& main, const Header& header)
{
    std::array<unsigned char, marksBytes> bytes{};
    for (std::size_t i = 0; i < 2; ++i) {
        putMark(&bytes[4 * i], header.journals[i]);
        putMark(&bytes[8 + 4 * i], header.logs[i]);
    }
    main.unsynced = true;
    return main.real->pMethods->xWrite(main.real, bytes.data(), static_cast<int>(bytes.size()), marksAt);
}

std::uint32_t randomMark()
{
    std::uint32_t mark = 0;
    while (mark == 0) sqlite3_randomness(sizeof mark, &mark);
    return mark;
}

std::uint32_t markOfLog(const unsigned char* salts)
{
    return std::max<std::uint32_t>(1, numberIn(salts) * 0x9e3779b1u ^ numberIn(salts + 4));
}

bool isOneOf(std::uint32_t mark, const std::array<std::uint32_t, 2>& marks)
{
    return mark != 0 && (mark == marks[0] || mark == marks[1]);
}

// A file that is looked at without following or waiting; not there where it is empty.
class Beside {
public:
    explicit Beside(const char* path)
    {
        if (::lstat(path, &m_about) != 0) return;
        m_there = !S_ISREG(m_about.st_mode) || m_about.st_size > 0;
        if (!m_there || !S_ISREG(m_about.st_mode)) return;
        m_descriptor = ::open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        m_busy = m_descriptor < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM);
    }
    Beside(const Beside&) = delete;
    Beside& operator=(const Beside&) = delete;
    ~Beside()
    {
        if (m_descriptor >= 0) ::close(m_descriptor);
    }
    bool there() const { return m_there; }
    bool canBeSeen() const { return m_descriptor >= 0; }
    bool cannotOpenMore() const { return m_busy; }
    std::int64_t size() const { return m_about.st_size; }
    bool read(std::span<unsigned char> bytes, std::int64_t at) const
    {
        return ::pread(m_descriptor, bytes.data(), bytes.size(), at) == static_cast<ssize_t>(bytes.size());
    }

    bool beginsWith(std::span<const unsigned char> magic) const // or with as much of it as is there
    {
        std::array<unsigned char, 8> bytes{};
        const auto count =
            static_cast<std::size_t>(std::min<std::int64_t>(size(), static_cast<std::int64_t>(magic.size())));
        return read(std::span(bytes).first(count), 0) &&
               std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count), magic.begin());
    }

private:
    struct stat m_about {};
    int m_descriptor = -1;
    bool m_there = false, m_busy = false;
};

// Somebody writes to the file now, so its journal is not one that was left.
bool isBeingWritten(sqlite3_file* real)
{
    int reserved = 0;
    return real->pMethods->xCheckReservedLock(real, &reserved) == SQLITE_OK && reserved != 0;
}

Leftover journalAt(const char* path, GuardedFile& main)
{
    const Beside journal(path);
    if (!journal.there()) return Leftover::None;
    if (journal.cannotOpenMore()) return Leftover::Ours; // SQLite says why
    if (!journal.canBeSeen()) return Leftover::Foreign;
    constexpr std::int64_t journalHead = 512; // without a page
    std::array<unsigned char, tagAt + 8> head{};
    std::array<unsigned char, 8> tail{};
    const bool begins = journal.read(head, 0);
    const bool whole = begins && journal.read(tail, journal.size() - static_cast<std::int64_t>(tail.size()));
    const auto blank = [](unsigned char byte) { return byte == 0; };
    // as SQLite ends one that it keeps
    if (begins && std::all_of(head.begin(), head.begin() + tagAt, blank)) return Leftover::None;
    // SQLite writes these bytes last: before them it has put nothing into the file
    constexpr std::size_t unsynced = 12;
    if (begins && std::all_of(head.begin(), head.begin() + unsynced, blank) &&
        std::equal(tagMagic.begin(), tagMagic.end(), head.begin() + tagAt))
        return Leftover::None;
    const Header header = headerOf(main.real);
    // one of several files ends so
    const bool ours = whole && std::equal(journalMagic.begin(), journalMagic.end(), head.begin()) &&
                      tail != journalMagic && std::equal(tagMagic.begin(), tagMagic.end(), head.begin() + tagAt) &&
                      (!header.there || (header.blank && numberIn(&head[16]) == 0) ||
                       isOneOf(numberIn(&head[tagAt + 4]), header.journals));
    // its writer came no further
    if (!ours && journal.size() <= journalHead && journal.beginsWith(journalMagic)) return Leftover::None;
    return ours || isBeingWritten(main.real) ? Leftover::Ours : Leftover::Foreign;
}

Leftover logAt(const char* path, GuardedFile& main)
{
    const Beside log(path);
    if (!log.there()) return Leftover::None;
    if (log.cannotOpenMore()) return Leftover::Ours;
    if (!log.canBeSeen()) return Leftover::Foreign;
    const Header header = headerOf(main.real);
    std::array<unsigned char, logHead + 16> head{};
    // its first page is of this round
    const bool filled = log.read(head, 0) && std::equal(&head[16], &head[24], &head[logHead + 8]);
    if (!filled) return header.wal ? Leftover::Ours : Leftover::Foreign;
    if (isOneOf(markOfLog(&head[16]), header.logs)) return Leftover::Ours;
    return header.wal && header.logs == std::array<std::uint32_t, 2>{} ? Leftover::Unmarked : Leftover::Foreign;
}

// Calls act(main, kind) if the path is that of a journal or log beside a file that is open.
template <typename Act>
bool besideMainFile(const char* path, Act act)
{
    const std::string_view whole(path);
    for (const auto& [suffix, kind] :
         {std::pair(journalSuffix, FileKind::Journal), std::pair(logSuffix, FileKind::Log)}) {
        if (!whole.ends_with(suffix)) continue;
        const std::lock_guard lock(mainFilesMutex);
        for (GuardedFile* main = mainFiles; main != nullptr; main = main->next)
            if (whole.substr(0, whole.size() - suffix.size()) == main->name) {
                act(*main, kind);
                return true;
            }
    }
    return false;
}

Leftover leftoverAt(const char* path, GuardedFile& main, FileKind kind)
{
    return kind == FileKind::Journal ? journalAt(path, main) : logAt(path, main);
}

int closeFile(sqlite3_file* file)
{
    GuardedFile& own = *guarded(file);
    if (own.kind == FileKind::Main) {
        const std::lock_guard lock(mainFilesMutex);
        for (GuardedFile** at = &mainFiles; *at != nullptr; at = &(*at)->next)
            if (*at == &own) {
                *at = own.next;
                break;
            }
    }
    temporaryBytes -= own.bytes;
    own.bytes = 0;
    return own.real->pMethods->xClose(own.real);
}

int readGuarded(sqlite3_file* file, void* bytes, int count, sqlite3_int64 at)
{
    return realOf(file)->pMethods->xRead(realOf(file), bytes, count, at);
}

// `change` of a copy of the bytes, which are SQLite's.
template <typename Change>
int writeChanged(sqlite3_file* real, const void* bytes, int count, Change change)
{
    auto* copy = static_cast<unsigned char*>(sqlite3_malloc(count));
    if (copy == nullptr) return SQLITE_NOMEM;
    std::memcpy(copy, bytes, static_cast<std::size_t>(count));
    change(copy);
    const int code = real->pMethods->xWrite(real, copy, count, 0);
    sqlite3_free(copy);
    return code;
}

// The first page, whose marks stay those of the file.
int writeFirstPage(GuardedFile& main, const void* bytes, int count)
{
    Header header = headerOf(main.real);
    if (header.problem != SQLITE_OK) return header.problem;
    if (!header.there) header.journals[0] = main.stamp;
    return writeChanged(main.real, bytes, count, [&](unsigned char* copy) {
        for (std::size_t i = 0; i < 2; ++i) {
            putMark(copy + marksAt + 4 * i, header.journals[i]);
            putMark(copy + marksAt + 8 + 4 * i, header.logs[i]);
        }
    });
}

// The beginning of a journal: the file gets its mark first.
int writeJournalHead(GuardedFile& journal, const void* bytes, int count)
{
    const std::uint32_t mark = randomMark();
    GuardedFile& main = *journal.main;
    Header header = headerOf(main.real);
    if (header.problem != SQLITE_OK) return header.problem;
    main.stamp = mark;
    if (header.there) {
        header.journals = {mark, header.journals[0]};
        if (const int code = putMarks(main, header); code != SQLITE_OK) return code;
        // after a loss of power there may be more of the journal on the disk than was synced, but no journal whose mark
        // the file lacks
        if (const int code = main.real->pMethods->xSync(main.real, SQLITE_SYNC_NORMAL); code != SQLITE_OK) return code;
        main.unsynced = false;
    }
    return writeChanged(journal.real, bytes, count, [&](unsigned char* copy) {
        std::copy(tagMagic.begin(), tagMagic.end(), copy + tagAt);
        putMark(copy + tagAt + 4, mark);
    });
}

// The beginning of a log, or of a new round of it: no page of it is there before the file has its mark.
int writeLogHead(GuardedFile& log, const void* bytes, int count)
{
    if (const int code = log.real->pMethods->xWrite(log.real, bytes, count, 0); code != SQLITE_OK) return code;
    Header header = headerOf(log.main->real);
    const std::uint32_t mark = markOfLog(static_cast<const unsigned char*>(bytes) + 16);
    if (header.problem != SQLITE_OK) return header.problem;
    if (!header.there || header.logs[0] == mark) return SQLITE_OK;
    header.logs = {mark, header.logs[0]};
    return putMarks(*log.main, header);
}

int writeTemporary(GuardedFile& own, const void* bytes, int count, sqlite3_int64 at)
{
    const std::int64_t grows = unlimited > 0 ? 0 : std::max<std::int64_t>(0, at + count - own.bytes);
    if (grows > 0 && temporaryBytes + grows > mostTemporaryBytes) {
        wasFull = true;
        return SQLITE_FULL;
    }
    own.bytes += grows;
    temporaryBytes += grows;
    return own.real->pMethods->xWrite(own.real, bytes, count, at);
}

int writeByKind(GuardedFile& own, const void* bytes, int count, sqlite3_int64 at)
{
    switch (own.kind) {
    case FileKind::Main:
        if (at == 0 && count >= databaseHeader) return writeFirstPage(own, bytes, count);
        break;
    case FileKind::Journal:
        if (at == 0 && count >= static_cast<int>(tagAt + 8)) return writeJournalHead(own, bytes, count);
        break;
    case FileKind::Log:
        if (at == 0 && count == logHead) return writeLogHead(own, bytes, count);
        break;
    case FileKind::Temporary: return writeTemporary(own, bytes, count, at);
    case FileKind::Other: break;
    }
    return own.real->pMethods->xWrite(own.real, bytes, count, at);
}

int writeGuarded(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 at)
{
    errno = 0;
    const int code = writeByKind(*guarded(file), bytes, count, at);
    if (code == SQLITE_IOERR_WRITE) problemOfWrite = errno;
    return code;
}

int truncateFile(sqlite3_file* file, sqlite3_int64 size)
{
    GuardedFile& own = *guarded(file);
    if (own.kind == FileKind::Temporary && size < own.bytes) {
        temporaryBytes -= own.bytes - size;
        own.bytes = size;
    }
    return own.real->pMethods->xTruncate(own.real, size);
}

int syncFile(sqlite3_file* file, int flags)
{
    GuardedFile& own = *guarded(file);
    GuardedFile* main = own.kind == FileKind::Main ? &own : own.main;
    if (main != nullptr && main->unsynced) {
        if (main != &own)
            if (const int code = main->real->pMethods->xSync(main->real, flags); code != SQLITE_OK) return code;
        main->unsynced = false;
    }
    return own.real->pMethods->xSync(own.real, flags);
}

int sizeOfFile(sqlite3_file* file, sqlite3_int64* size)
{
    return realOf(file)->pMethods->xFileSize(realOf(file), size);
}
int lockFile(sqlite3_file* file, int level) { return realOf(file)->pMethods->xLock(realOf(file), level); }
int unlockFile(sqlite3_file* file, int level) { return realOf(file)->pMethods->xUnlock(realOf(file), level); }
int checkReserved(sqlite3_file* file, int* reserved)
{
    return realOf(file)->pMethods->xCheckReservedLock(realOf(file), reserved);
}
int controlFile(sqlite3_file* file, int what, void* value)
{
    return realOf(file)->pMethods->xFileControl(realOf(file), what, value);
}
int sectorSize(sqlite3_file* file) { return realOf(file)->pMethods->xSectorSize(realOf(file)); }
int characteristics(sqlite3_file* file) { return realOf(file)->pMethods->xDeviceCharacteristics(realOf(file)); }
int mapShared(sqlite3_file* file, int region, int size, int extend, void volatile** memory)
{
    return realOf(file)->pMethods->xShmMap(realOf(file), region, size, extend, memory);
}
int lockShared(sqlite3_file* file, int offset, int count, int flags)
{
    return realOf(file)->pMethods->xShmLock(realOf(file), offset, count, flags);
}
void sharedBarrier(sqlite3_file* file) { realOf(file)->pMethods->xShmBarrier(realOf(file)); }
int unmapShared(sqlite3_file* file, int remove) { return realOf(file)->pMethods->xShmUnmap(realOf(file), remove); }
int fetchPage(sqlite3_file* file, sqlite3_int64 at, int count, void** page)
{
    return realOf(file)->pMethods->xFetch(realOf(file), at, count, page);
}
int unfetchPage(sqlite3_file* file, sqlite3_int64 at, void* page)
{
    return realOf(file)->pMethods->xUnfetch(realOf(file), at, page);
}

constexpr sqlite3_io_methods methods{
    3,          closeFile,     readGuarded,   writeGuarded, truncateFile, syncFile,        sizeOfFile,
    lockFile,   unlockFile,    checkReserved, controlFile,  sectorSize,   characteristics, mapShared,
    lockShared, sharedBarrier, unmapShared,   fetchPage,    unfetchPage};

FileKind fileKindOf(const char* path, int flags)
{
    if ((flags & SQLITE_OPEN_MAIN_DB) != 0) return FileKind::Main;
    if ((flags & SQLITE_OPEN_MAIN_JOURNAL) != 0) return FileKind::Journal;
    if ((flags & SQLITE_OPEN_WAL) != 0) return FileKind::Log;
    return path == nullptr || (flags & SQLITE_OPEN_DELETEONCLOSE) != 0 ? FileKind::Temporary : FileKind::Other;
}

int openFile(sqlite3_vfs* files, const char* path, sqlite3_file* file, int flags, int* gotFlags)
{
    GuardedFile& own = *new (file) GuardedFile{};
    own.kind = fileKindOf(path, flags);
    own.real = reinterpret_cast<sqlite3_file*>(&own + 1);
    std::memset(own.real, 0, static_cast<std::size_t>(realFiles(files)->szOsFile));
    if (own.kind == FileKind::Other) return SQLITE_CANTOPEN; // a journal of several files: we make none
    if (own.kind == FileKind::Journal || own.kind == FileKind::Log) {
        own.main = guarded(sqlite3_database_file_object(path));
        if (leftoverAt(path, *own.main, own.kind) == Leftover::Foreign) return SQLITE_CANTOPEN;
    }
    const int code = realFiles(files)->xOpen(realFiles(files), path, own.real, flags, gotFlags);
    if (own.real->pMethods == nullptr) return code;
    own.base.pMethods = &methods; // also where it failed: SQLite closes it then
    if (own.kind != FileKind::Main) return code;
    own.name = path;
    const std::lock_guard lock(mainFilesMutex);
    own.next = mainFiles;
    mainFiles = &own;
    return code;
}

// SQLite deletes journals and logs that it has used up, and files that a journal names.
int deleteFile(sqlite3_vfs* files, const char* path, int syncFolder)
{
    int code = SQLITE_IOERR_DELETE;
    besideMainFile(path, [&](GuardedFile& main, FileKind kind) {
        if (leftoverAt(path, main, kind) == Leftover::Foreign) return;
        // a log that comes back after a loss of power is not to meet later changes
        code = realFiles(files)->xDelete(realFiles(files), path, kind == FileKind::Log ? 1 : syncFolder);
    });
    return code;
}

int accessFile(sqlite3_vfs* files, const char* path, int flags, int* result)
{
    bool hidden = false;
    if (flags == SQLITE_ACCESS_EXISTS)
        besideMainFile(path, [&](GuardedFile& main, FileKind kind) {
            const Leftover there = leftoverAt(path, main, kind);
            hidden =
                there == Leftover::Foreign || there == Leftover::None; // SQLite would delete one without a page, too
        });
    if (!hidden) return realFiles(files)->xAccess(realFiles(files), path, flags, result);
    *result = 0;
    return SQLITE_OK;
}

int fullPath(sqlite3_vfs* files, const char* path, int size, char* full)
{
    return realFiles(files)->xFullPathname(realFiles(files), path, size, full);
}

GuardedFile* mainFileOf(sqlite3* handle)
{
    sqlite3_file* file = nullptr;
    if (sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK || file == nullptr ||
        file->pMethods != &methods)
        return nullptr;
    return guarded(file);
}

} // namespace

const char* guardedFiles()
{
    constexpr const char* name = "stagewright";
    static sqlite3_vfs files;
    static const int registered = [] {
        sqlite3_vfs* real = sqlite3_vfs_find(nullptr);
        files = *real;
        files.zName = name;
        files.pNext = nullptr;
        files.pAppData = real;
        files.szOsFile = static_cast<int>(sizeof(GuardedFile)) + real->szOsFile;
        files.xOpen = openFile;
        files.xDelete = deleteFile;
        files.xAccess = accessFile;
        files.xFullPathname = fullPath;
        return sqlite3_vfs_register(&files, 0);
    }();
    static_cast<void>(registered); // else opening by that name fails
    return name;
}

Leftovers leftoversOf(sqlite3* handle)
{
    GuardedFile* main = mainFileOf(handle);
    if (main == nullptr) return {};
    return {journalAt((std::string(main->name) + std::string(journalSuffix)).c_str(), *main),
            logAt((std::string(main->name) + std::string(logSuffix)).c_str(), *main)};
}

bool isInWal(sqlite3* handle)
{
    GuardedFile* main = mainFileOf(handle);
    return main != nullptr && headerOf(main->real).wal;
}

void allowTemporaryFiles(std::int64_t bytes)
{
    for (std::int64_t most = mostTemporaryBytes;
         most < bytes && !mostTemporaryBytes.compare_exchange_weak(most, bytes);) {
    }
}

int problemOfLastWrite() { return std::exchange(problemOfWrite, 0); }

bool temporaryFilesWereFull() { return std::exchange(wasFull, false); }

UnlimitedTemporaryFiles::UnlimitedTemporaryFiles() { ++unlimited; }

UnlimitedTemporaryFiles::~UnlimitedTemporaryFiles() { --unlimited; }

} // namespace stagewright
