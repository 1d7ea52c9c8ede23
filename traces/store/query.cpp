// Read-only SQL over a run file.
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
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_FUNCTION:
        return detail != nullptr && std::string_view(detail) == "load_extension" ? SQLITE_DENY : SQLITE_OK;
    default:
        return SQLITE_DENY;
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

tl::unexpected<Error> refused()
{
    return fail(ErrorCode::Usage, "only reading is allowed", "write one SELECT");
}

std::string cell(const Statement& row, int column)
{
    if (sqlite3_column_type(row.handle(), column) == SQLITE_BLOB)
        return fmt::format("<{} bytes>", sqlite3_column_bytes(row.handle(), column));
    return row.text(column);
}

} // namespace

Result<RunFile::Table> runQuery(Database& database, const std::string& sql, std::size_t maxRows, const Progress& progress)
{
    const Watch watch(database, [&] { return progress.cancelled(); });
    const ReadingOnly guard(database.handle());
    sqlite3_stmt* handle = nullptr;
    const char* tail = nullptr;
    const int code = sqlite3_prepare_v2(database.handle(), sql.c_str(), static_cast<int>(sql.size()) + 1, &handle, &tail);
    Statement statement(handle);
    if (code != SQLITE_OK) {
        if ((code & 0xff) == SQLITE_AUTH) return refused();
        Error error = database.error(code);
        if ((code & 0xff) == SQLITE_ERROR)
            error = {ErrorCode::Usage, fmt::format("query: {}", sqlite3_errmsg(database.handle())),
                     "the tables are spans, memory, edges, runs, steps, metrics and notes, and the functions report_bubbles(1) and so on"};
        return tl::unexpected(std::move(error));
    }
    if (!statement) return fail(ErrorCode::Usage, "the query is empty", "write one SELECT");
    if (std::string_view(tail).find_first_not_of(" \t\r\n;") != std::string_view::npos)
        return fail(ErrorCode::Usage, "the query has more than one statement", "write one SELECT");
    if (sqlite3_stmt_readonly(handle) == 0) return refused();

    RunFile::Table table;
    const int columns = sqlite3_column_count(handle);
    for (int i = 0; i < columns; ++i) table.columns.emplace_back(sqlite3_column_name(handle, i));
    for (;;) {
        const auto row = database.step(statement);
        if (!row) return tl::unexpected(row.error());
        if (!*row) return table;
        if (table.rows.size() == maxRows) {
            table.truncated = true;
            return table;
        }
        auto& cells = table.rows.emplace_back();
        for (int i = 0; i < columns; ++i) cells.push_back(cell(statement, i));
    }
}

} // namespace stagewright
