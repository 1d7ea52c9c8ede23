#include "traces/store/database.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <limits>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schedules/base/open_files.h"
#include "traces/store/guarded_files.h"
#include "traces/store/table_digests.h"

namespace stagewright {

namespace {

constexpr int instructionsBetween = 10000; // of SQLite, between two questions of a Watch

Error errorOf(sqlite3* handle, int code, const std::string& path)
{
    std::string message = "file " + path + ": ";
    const char* reason = handle != nullptr ? sqlite3_errmsg(handle) : sqlite3_errstr(code);
    switch (code & 0xff) {
    case SQLITE_FULL:
        if (temporaryFilesWereFull())
            return {ErrorCode::Failed,
                    message + "this needs more temporary files on the disk than a file of its size may",
                    "ask for less; if nothing was asked, the file is damaged or made to do so"};
        return *noRoomLeft(ENOSPC, "file " + path);
    case SQLITE_IOERR:
        if (auto full = noRoomLeft(code == SQLITE_IOERR_WRITE ? problemOfLastWrite()
                                   : handle != nullptr        ? sqlite3_system_errno(handle)
                                                              : 0,
                                   "file " + path))
            return std::move(*full);
        return {ErrorCode::Failed, message + "input or output failed (" + reason + ")",
                "check the disk and its free space"};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return {ErrorCode::Unavailable, message + "another program is writing to it", "try again when it has finished"};
    case SQLITE_NOTADB:
        return {ErrorCode::Unreadable, message + "not a run file", "choose a file written by stagewright"};
    case SQLITE_CORRUPT:
        return {ErrorCode::Unreadable, message + "damaged (" + reason + ")", "restore it from a copy, or record again"};
    case SQLITE_CANTOPEN:
        if (auto full = tooManyOpenFiles(handle != nullptr ? sqlite3_system_errno(handle) : 0, "file " + path))
            return std::move(*full);
        return {ErrorCode::Unreadable, message + "can't be opened", "check that it exists and is readable"};
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return {ErrorCode::Unreadable, message + "can't be written, it is read-only",
                "check its permissions, or copy it"};
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG: return {ErrorCode::Failed, message + reason, "free some memory"};
    case SQLITE_INTERRUPT: return {ErrorCode::Cancelled, message + "cancelled", {}};
    default: return {ErrorCode::Unreadable, message + reason, {}};
    }
}

} // namespace

Statement& Statement::operator=(Statement&& other) noexcept
{
    std::swap(m_statement, other.m_statement);
    std::swap(m_next, other.m_next);
    return *this;
}

void Statement::reset()
{
    sqlite3_reset(m_statement);
    sqlite3_clear_bindings(m_statement);
    m_next = 1;
}

Statement& Statement::bind(std::int64_t value)
{
    sqlite3_bind_int64(m_statement, m_next++, value);
    return *this;
}

Statement& Statement::bind(double value)
{
    sqlite3_bind_double(m_statement, m_next++, value);
    return *this;
}

Statement& Statement::bind(std::string_view text)
{
    sqlite3_bind_text64(m_statement, m_next++, text.empty() ? "" : text.data(), text.size(), SQLITE_STATIC,
                        SQLITE_UTF8);
    return *this;
}

Statement& Statement::bind(std::span<const std::byte> blob)
{
    sqlite3_bind_blob64(m_statement, m_next++, blob.data(), blob.size(), SQLITE_STATIC);
    return *this;
}

Statement& Statement::bindNull()
{
    sqlite3_bind_null(m_statement, m_next++);
    return *this;
}

int Statement::smallInteger(int column) const
{
    constexpr std::int64_t least = std::numeric_limits<int>::min();
    constexpr std::int64_t most = std::numeric_limits<int>::max();
    return static_cast<int>(std::clamp(integer(column), least, most));
}

double Statement::real(int column) const
{
    if (isNull(column)) return std::numeric_limits<double>::quiet_NaN();
    return sqlite3_column_double(m_statement, column);
}

std::string Statement::text(int column) const
{
    const unsigned char* text = sqlite3_column_text(m_statement, column);
    if (text == nullptr) return {};
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(m_statement, column));
    return {reinterpret_cast<const char*>(text), size};
}

std::span<const std::byte> Statement::blob(int column) const
{
    const void* data = sqlite3_column_blob(m_statement, column);
    if (data == nullptr) return {};
    return {static_cast<const std::byte*>(data), static_cast<std::size_t>(sqlite3_column_bytes(m_statement, column))};
}

std::string Database::uriOf(const std::string& path, std::string_view how)
{
    std::string name = path.starts_with('/') ? "file://" : "file:";
    for (const char letter : path) {
        constexpr std::string_view digits = "0123456789abcdef";
        const auto byte = static_cast<unsigned char>(letter);
        if (letter == '%' || letter == '?' || letter == '#')
            name += {'%', digits[byte >> 4], digits[byte & 15]};
        else
            name += letter;
    }
    return name.append("?").append(how);
}

Result<std::unique_ptr<Database>> Database::open(const std::string& path, int flags)
{
    return path == ":memory:" ? openAs(path, path, flags) : openAs(uriOf(path, {}), path, flags | SQLITE_OPEN_URI);
}

Result<std::unique_ptr<Database>> Database::openAlone(const std::string& path)
{
    return openAs(uriOf(path, "immutable=1"), path, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
}

Result<std::unique_ptr<Database>> Database::openInMemory(const std::string& path)
{
    auto database = openAs(":memory:", path, SQLITE_OPEN_READWRITE);
    if (!database) return database;
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat about {};
    const bool there = file >= 0 && ::fstat(file, &about) == 0 && about.st_size > 0;
    const auto size = static_cast<std::size_t>(about.st_size);
    void* mapped = there ? ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0) : MAP_FAILED;
    if (file >= 0) ::close(file);
    if (mapped == MAP_FAILED) return tl::unexpected((*database)->error(SQLITE_CANTOPEN));
    (*database)->m_mapped = {static_cast<std::byte*>(mapped), size};
    constexpr std::size_t versions = 18; // in its header: 2 where SQLite kept a log of writes
    if (size > versions + 1) (*database)->m_mapped[versions] = (*database)->m_mapped[versions + 1] = std::byte{1};
    const int code = sqlite3_deserialize((*database)->m_handle, "main", static_cast<unsigned char*>(mapped),
                                         about.st_size, about.st_size, SQLITE_DESERIALIZE_READONLY);
    if (code != SQLITE_OK) return tl::unexpected((*database)->error(code));
    return database;
}

Result<std::unique_ptr<Database>> Database::openTemporary(const std::string& path)
{
    return openAs("", path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
}

Result<std::unique_ptr<Database>> Database::openAs(const std::string& name, const std::string& path, int flags)
{
    sqlite3* handle = nullptr;
    const int code =
        sqlite3_open_v2(name.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, guardedFiles());
    std::unique_ptr<Database> database(new Database(handle, path));
    if (code != SQLITE_OK) return tl::unexpected(errorOf(handle, code, path));
    sqlite3_busy_timeout(handle, Database::busyMilliseconds);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    database->closingCheckpoints(false);
    return database;
}

Database::Database(sqlite3* handle, std::string path) : m_handle(handle), m_path(std::move(path)) {}

void Database::keepDigests()
{
    if (!m_digests) m_digests = std::make_unique<TableDigests>(m_handle);
}

Database::~Database()
{
    m_cache.clear();
    m_digests.reset();
    sqlite3_close_v2(m_handle);
    if (!m_mapped.empty()) ::munmap(m_mapped.data(), m_mapped.size());
}

void Database::closingCheckpoints(bool may) const
{
    sqlite3_db_config(m_handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, may ? 0 : 1, nullptr);
}

void Database::keepRoom(std::int64_t pageSize)
{
    m_pageSize = pageSize;
    int atOnce = pageSize > 0 ? 1 << 16 : 0;
    (void)sqlite3_file_control(m_handle, "main", SQLITE_FCNTL_CHUNK_SIZE, &atOnce);
}

Result<void> Database::makeRoom()
{
    if (m_pageSize == 0) return {};
    STAGEWRIGHT_TRY(auto pages, cached("PRAGMA page_count"));
    STAGEWRIGHT_CHECK(step(*pages));
    sqlite3_int64 bytes = pages->integer(0) * m_pageSize;
    pages->reset();
    errno = 0;
    const int code = sqlite3_file_control(m_handle, "main", SQLITE_FCNTL_SIZE_HINT, &bytes);
    if (code == SQLITE_OK || code == SQLITE_NOTFOUND) return {};
    const auto problem = noRoomLeft(errno, "file " + m_path);
    return tl::unexpected(problem ? *problem : *noRoomLeft(ENOSPC, "file " + m_path));
}

Error Database::error(int code) const { return errorOf(m_handle, code, m_path); }

Result<Statement> Database::prepare(std::string_view sql) const
{
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v3(m_handle, sql.data(), static_cast<int>(sql.size()), 0, &statement, nullptr);
    if (code != SQLITE_OK) return tl::unexpected(error(code));
    return Statement(statement);
}

Result<Statement*> Database::cached(std::string_view sql)
{
    auto found = m_cache.find(std::string(sql));
    if (found == m_cache.end()) {
        STAGEWRIGHT_TRY(auto statement, prepare(sql));
        found = m_cache.emplace(std::string(sql), std::move(statement)).first;
    }
    found->second.reset();
    return &found->second;
}

Result<void> Database::execute(const std::string& sql) const
{
    const int code = sqlite3_exec(m_handle, sql.c_str(), nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) return tl::unexpected(error(code));
    return {};
}

Result<bool> Database::step(Statement& statement) const
{
    const int code = sqlite3_step(statement.handle());
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    Error failure = error(code);
    statement.reset();
    return tl::unexpected(std::move(failure));
}

Result<void> Database::run(Statement& statement) const
{
    for (;;) {
        STAGEWRIGHT_TRY(const auto row, step(statement));
        if (!row) break;
    }
    statement.reset();
    return {};
}

Result<std::int64_t> Database::integer(std::string_view sql) const
{
    STAGEWRIGHT_TRY(auto statement, prepare(sql));
    STAGEWRIGHT_TRY(const auto row, step(statement));
    return row ? statement.integer(0) : 0;
}

Watch::Watch(Database& database, std::function<bool()> ends)
    : m_database(database), m_ends(std::move(ends)), m_outer(std::exchange(database.m_watch, this))
{
    sqlite3_progress_handler(m_database.m_handle, instructionsBetween, asked, this);
}

Watch::~Watch()
{
    m_database.m_watch = m_outer;
    sqlite3_progress_handler(m_database.m_handle, m_outer != nullptr ? instructionsBetween : 0,
                             m_outer != nullptr ? asked : nullptr, m_outer);
}

int Watch::asked(void* watch)
{
    for (const auto* each = static_cast<const Watch*>(watch); each != nullptr; each = each->m_outer)
        if (each->m_ends()) return 1;
    return 0;
}

Result<Transaction> Transaction::begin(Database& database)
{
    STAGEWRIGHT_CHECK(database.execute("BEGIN IMMEDIATE"));
    return Transaction(database);
}

Transaction::~Transaction()
{
    if (m_database != nullptr && sqlite3_get_autocommit(m_database->handle()) == 0) m_database->quietly("ROLLBACK");
}

Result<void> Transaction::commit()
{
    if (TableDigests* digests = m_database->digests())
        if (auto done = digests->flush(*m_database); !done) return done;
    if (auto room = m_database->makeRoom(); !room) return room;
    if (auto done = m_database->execute("COMMIT"); !done) return done;
    m_database = nullptr;
    return {};
}

} // namespace stagewright
