// Read-only SQL over a run file.
#include "traces/store/query.h"

#include <chrono>
#include <condition_variable>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <stop_token>
#include <thread>

#include <pthread.h>

#include <fmt/format.h>

#include "traces/store/run_store.h"
#include "traces/store/sql_tables.h"

namespace stagewright {

namespace {

int onlyReading(void*, int action, const char*, const char* detail, const char*, const char*)
{
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE: return SQLITE_OK;
    case SQLITE_FUNCTION:
        return detail != nullptr && std::string_view(detail) == "load_extension" ? SQLITE_DENY : SQLITE_OK;
    default: return SQLITE_DENY;
    }
}

// Denies everything but reading while it lives.
class ReadingOnly {
public:
    explicit ReadingOnly(sqlite3* handle) : m_handle(handle) { sqlite3_set_authorizer(m_handle, onlyReading, nullptr); }
    ReadingOnly(const ReadingOnly&) = delete;
    ReadingOnly& operator=(const ReadingOnly&) = delete;
    ~ReadingOnly() { sqlite3_set_authorizer(m_handle, nullptr, nullptr); }

private:
    sqlite3* m_handle;
};

// What a query calls, such as report_NAME(), stops with it.
class Running {
public:
    Running(Database& database, const Progress& progress) : m_database(database) { m_database.setQuery(&progress); }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running() { m_database.setQuery(nullptr); }

private:
    Database& m_database;
};

// A query holds one view of the file. What is recorded meanwhile stays in SQLite's log, which is not to grow without
// end.
class LogGrowth {
public:
    explicit LogGrowth(const Database& database) : m_log(database.path() + "-wal"), m_before(size()) {}
    bool tooMuch() // asked often, and looks now and then
    {
        constexpr auto between = std::chrono::milliseconds(100);
        const auto now = std::chrono::steady_clock::now();
        if (m_tooMuch || now - m_looked < between) return m_tooMuch;
        m_looked = now;
        return m_tooMuch = size() > m_before + mostGrowth;
    }
    Error error(const Database& database) const
    {
        return {ErrorCode::Failed,
                fmt::format("file {}: the query was ended: {} MiB were recorded while it ran, which stay in the file's "
                            "log until it ends",
                            database.path(), mostGrowth >> 20),
                "ask for less, such as one step, or again when the recording has ended"};
    }

private:
    static constexpr std::uintmax_t mostGrowth = std::uintmax_t{16} << 20;
    std::uintmax_t size() const
    {
        std::error_code none;
        const std::uintmax_t bytes = std::filesystem::file_size(m_log, none);
        return none ? 0 : bytes;
    }
    std::string m_log;
    std::uintmax_t m_before;
    std::chrono::steady_clock::time_point m_looked;
    bool m_tooMuch = false;
};

// SQLite counts the rows of a table in one instruction, within which it asks no Watch: a thread of its own interrupts
// it when the query's has computed for so long or is to stop.
class Alarm {
public:
    Alarm(const Database& database, double seconds, const Progress& progress)
        : m_seconds(seconds), m_database(database), m_progress(progress)
    {
        ::pthread_getcpuclockid(::pthread_self(), &m_clock);
        m_until = computed() + seconds;
        m_thread = std::jthread([this](const std::stop_token& ended) { wait(ended); });
    }
    Alarm(const Alarm&) = delete;
    Alarm& operator=(const Alarm&) = delete;
    bool passed() const { return computed() > m_until; }
    Error error() const
    {
        return {ErrorCode::Failed,
                fmt::format("file {}: the query was ended: it had computed for {} s", m_database.path(), m_seconds),
                "ask for less, such as one step, or let it take longer with 'stagewright sql --time-limit'; if it asks "
                "for little, the file is damaged or made to do so"};
    }

private:
    void wait(const std::stop_token& ended)
    {
        constexpr auto between = std::chrono::milliseconds(50);
        std::unique_lock lock(m_mutex);
        while (!m_wake.wait_for(lock, ended, between, [] { return false; }) && !ended.stop_requested())
            if (m_progress.cancelled() || passed()) sqlite3_interrupt(m_database.handle());
    }
    double computed() const // by the query's thread
    {
        timespec time{};
        ::clock_gettime(m_clock, &time);
        return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    }

    double m_seconds, m_until = 0;
    const Database& m_database;
    const Progress& m_progress;
    clockid_t m_clock{};
    std::mutex m_mutex;
    std::condition_variable_any m_wake;
    std::jthread m_thread; // the last: it uses the others
};

tl::unexpected<Error> refused() { return fail(ErrorCode::Usage, "only reading is allowed", "write one SELECT"); }

std::string cell(const Statement& row, int column)
{
    if (sqlite3_column_type(row.handle(), column) == SQLITE_BLOB)
        return fmt::format("<{} bytes>", sqlite3_column_bytes(row.handle(), column));
    return row.text(column);
}

} // namespace

Result<RunFile::Table> runQuery(Database& database, const std::string& sql, std::size_t maxRows, double seconds,
                                const Progress& progress)
{
    LogGrowth log(database);
    const Watch watch(database, [&] { return progress.cancelled() || log.tooMuch(); });
    const Alarm alarm(database, seconds, progress);
    const ReadingOnly guard(database.handle());
    const Running running(database, progress);
    sqlite3_stmt* handle = nullptr;
    const char* tail = nullptr;
    const int code =
        sqlite3_prepare_v2(database.handle(), sql.c_str(), static_cast<int>(sql.size()) + 1, &handle, &tail);
    Statement statement(handle);
    if (code != SQLITE_OK) {
        if ((code & 0xff) == SQLITE_AUTH) return refused();
        Error error = database.error(code);
        if ((code & 0xff) == SQLITE_ERROR)
            error = {ErrorCode::Usage, fmt::format("query: {}", sqlite3_errmsg(database.handle())),
                     "the tables are spans, memory, edges, runs, steps, metrics and notes, and the functions "
                     "report_bubbles(1) and so on"};
        return tl::unexpected(std::move(error));
    }
    if (!statement) return fail(ErrorCode::Usage, "the query is empty", "write one SELECT");
    if (std::string_view(tail).find_first_not_of(" \t\r\n;") != std::string_view::npos)
        return fail(ErrorCode::Usage, "the query has more than one statement", "write one SELECT");
    if (sqlite3_stmt_readonly(handle) == 0) return refused();

    constexpr std::size_t mostBytes = std::size_t{256} << 20; // of all cells
    std::size_t bytes = 0;
    RunFile::Table table;
    const int columns = sqlite3_column_count(handle);
    for (int i = 0; i < columns; ++i) table.columns.emplace_back(sqlite3_column_name(handle, i));
    for (;;) {
        const auto row = database.step(statement);
        const bool ended = !row && row.error().code == ErrorCode::Cancelled && !progress.cancelled();
        if (ended && alarm.passed()) return tl::unexpected(alarm.error());
        if (ended && log.tooMuch()) return tl::unexpected(log.error(database));
        if (!row) return tl::unexpected(row.error());
        if (!*row) return table;
        if (table.rows.size() == maxRows || bytes > mostBytes) {
            table.truncated = true;
            return table;
        }
        auto& cells = table.rows.emplace_back();
        cells.reserve(static_cast<std::size_t>(columns));
        for (int i = 0; i < columns; ++i) bytes += sizeof(std::string) + cells.emplace_back(cell(statement, i)).size();
    }
}

} // namespace stagewright
