// A SQLite connection: prepared statements, transactions, errors as text. Only traces/store uses SQLite.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include <sqlite3.h>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"

namespace stagewright {

// One prepared statement. Parameters are numbered from 1 in the order they are bound.
class Statement {
public:
    Statement() = default;
    explicit Statement(sqlite3_stmt* statement) : m_statement(statement) {}
    Statement(Statement&& other) noexcept : m_statement(other.m_statement), m_next(other.m_next)
    {
        other.m_statement = nullptr;
    }
    Statement& operator=(Statement&& other) noexcept;
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;
    ~Statement() { sqlite3_finalize(m_statement); }

    explicit operator bool() const { return m_statement != nullptr; }
    sqlite3_stmt* handle() const { return m_statement; }
    void reset();

    Statement& bind(std::int64_t value);
    Statement& bind(double value);                    // NaN becomes NULL
    Statement& bind(std::string_view text);           // must live until the statement is reset
    Statement& bind(std::span<const std::byte> blob); // must also live until the statement is reset
    Statement& bindNull();

    std::int64_t integer(int column) const { return sqlite3_column_int64(m_statement, column); }
    int smallInteger(int column) const; // clamped to int
    double real(int column) const;      // NULL is NaN
    std::string text(int column) const;
    std::span<const std::byte> blob(int column) const; // valid until the next step
    bool isNull(int column) const { return sqlite3_column_type(m_statement, column) == SQLITE_NULL; }

private:
    sqlite3_stmt* m_statement = nullptr;
    int m_next = 1;
};

class TableDigests;
class Watch;

class Database {
public:
    static constexpr int busyMilliseconds = 10'000; // how long a call waits for another program
    // flags as sqlite3_open_v2. Extended result codes, that patience, no triggers; only journals and logs of its own
    // (guarded_files.h). Nothing is put into the file when it is closed, unless closingCheckpoints().
    static Result<std::unique_ptr<Database>> open(const std::string& path, int flags);
    // As which ATTACH takes it, with "mode=ro" or the like.
    static std::string uriOf(const std::string& path, std::string_view how);
    // The file alone, as it is: no lock, no log beside it. For folders where nothing can be written.
    static Result<std::unique_ptr<Database>> openAlone(const std::string& path);
    // What a link to a file in memory leads to, which SQLite doesn't follow. Without a log beside it.
    static Result<std::unique_ptr<Database>> openInMemory(const std::string& path);
    // Empty, in a file that SQLite removes; `path` is named in its errors.
    static Result<std::unique_ptr<Database>> openTemporary(const std::string& path);
    void closingCheckpoints(bool may) const;
    ~Database();
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;

    sqlite3* handle() const { return m_handle; }
    const std::string& path() const { return m_path; }

    Result<Statement> prepare(std::string_view sql) const;
    // A statement kept for the life of the connection, reset and ready to bind.
    Result<Statement*> cached(std::string_view sql);
    // several statements, no rows
    Result<void> execute(const std::string& sql) const;
    // for destructors
    void quietly(const char* sql) const noexcept { sqlite3_exec(m_handle, sql, nullptr, nullptr, nullptr); }
    // true: a row is there; false: done.
    Result<bool> step(Statement& statement) const;
    Result<void> run(Statement& statement) const;             // steps to the end and resets
    Result<std::int64_t> integer(std::string_view sql) const; // first column of the first row, 0 if there is none
    std::int64_t lastId() const { return sqlite3_last_insert_rowid(m_handle); }
    Error error(int code) const; // of the last call, naming the file

    // A run file that is written has digests of its tables (table_digests.h), which every commit renews. Else null.
    void keepDigests();
    TableDigests* digests() const { return m_digests.get(); }
    // In WAL mode every commit finds room in the file for all its pages, also those that are in the log only, so that
    // they can be put into it on a full disk. 0: no more.
    void keepRoom(std::int64_t pageSize);
    Result<void> makeRoom();
    // The stop of the query that runs on the connection, for what reads on its behalf; nullptr: none runs, or nobody
    // may stop it.
    const Progress* query() const { return m_query; }
    void setQuery(const Progress* progress) { m_query = progress; }

private:
    friend class Watch;
    static Result<std::unique_ptr<Database>> openAs(const std::string& name, const std::string& path, int flags);
    Database(sqlite3* handle, std::string path);
    sqlite3* m_handle;
    std::string m_path;
    std::unordered_map<std::string, Statement> m_cache;
    std::unique_ptr<TableDigests> m_digests;
    Watch* m_watch = nullptr;    // the innermost
    std::int64_t m_pageSize = 0; // 0: no room is kept
    const Progress* m_query = nullptr;
    std::span<std::byte> m_mapped; // of a file in memory, which SQLite reads
};

// While it lives, whatever SQLite does on the connection ends with Cancelled once `ends` says so: it is asked many
// times a second. They nest.
class Watch {
public:
    Watch(Database& database, std::function<bool()> ends);
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch();

private:
    static int asked(void* watch);
    Database& m_database;
    std::function<bool()> m_ends;
    Watch* m_outer;
};

// A function that SQLite calls, which no exception may leave: without memory it returns SQLITE_NOMEM.
template <auto function>
struct CalledBySqlite;
template <typename... Arguments, int (*function)(Arguments...)>
struct CalledBySqlite<function> {
    static int call(Arguments... arguments)
    {
        try {
            return function(arguments...);
        } catch (const std::bad_alloc&) {
            return SQLITE_NOMEM;
        }
    }
};

// BEGIN IMMEDIATE … COMMIT; rolled back unless committed. Changes of a run file are made in one: it renews the digests.
class Transaction {
public:
    static Result<Transaction> begin(Database& database);
    Transaction(Transaction&& other) noexcept : m_database(other.m_database) { other.m_database = nullptr; }
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    Transaction& operator=(Transaction&&) = delete;
    ~Transaction();
    Result<void> commit();

private:
    explicit Transaction(Database& database) : m_database(&database) {}
    Database* m_database;
};

} // namespace stagewright
