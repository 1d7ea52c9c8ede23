#include "traces/store/table_digests.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "traces/store/rows.h"
#include "traces/store/schema.h"

// Debian's SQLite has the hook, its header only on request.
extern "C" {
void* sqlite3_preupdate_hook(sqlite3*,
                             void (*)(void*, sqlite3*, int, char const*, char const*, sqlite3_int64, sqlite3_int64),
                             void*);
int sqlite3_preupdate_old(sqlite3*, int, sqlite3_value**);
int sqlite3_preupdate_new(sqlite3*, int, sqlite3_value**);
int sqlite3_preupdate_count(sqlite3*);
}

namespace stagewright {

namespace {

constexpr std::string_view queries = "saved_query"; // the file's own: its first column does not name one
constexpr std::string_view sequence = "sqlite_sequence";
constexpr std::string_view stepLog = "step_log";
constexpr std::string_view digestTable = "table_digest"; // of the file: which digests there are
constexpr std::int64_t digestsCountedSince = 7;          // version of the file

// Every step is reversible, so that no change of one value goes unseen.
class Hash {
public:
    void add(std::uint64_t value)
    {
        m_value = (m_value ^ value) * 0x9e3779b97f4a7c15u;
        m_value ^= m_value >> 29;
    }
    void add(const void* bytes, std::size_t count)
    {
        add(count);
        const auto* at = static_cast<const unsigned char*>(bytes);
        std::uint64_t part = 0;
        for (; count >= sizeof part; at += sizeof part, count -= sizeof part) {
            std::memcpy(&part, at, sizeof part);
            add(part);
        }
        if (count == 0) return;
        part = 0;
        std::memcpy(&part, at, count);
        add(part);
    }
    void add(sqlite3_value* value)
    {
        int type = sqlite3_value_type(value);
        // a whole number in a column of REAL is stored as an integer, and the hook shows it as that
        const double number = type == SQLITE_FLOAT ? sqlite3_value_double(value) : 0;
        if (type == SQLITE_FLOAT && std::abs(number) < 0x1p53 && number == std::trunc(number)) type = SQLITE_INTEGER;
        add(static_cast<std::uint64_t>(type));
        if (type == SQLITE_INTEGER) add(static_cast<std::uint64_t>(sqlite3_value_int64(value)));
        if (type == SQLITE_FLOAT) {
            std::uint64_t bits = 0;
            std::memcpy(&bits, &number, sizeof bits);
            add(bits);
        }
        if (type == SQLITE_TEXT || type == SQLITE_BLOB) {
            const void* bytes =
                type == SQLITE_TEXT ? static_cast<const void*>(sqlite3_value_text(value)) : sqlite3_value_blob(value);
            add(bytes, static_cast<std::size_t>(sqlite3_value_bytes(value)));
        }
    }
    std::uint64_t value() const { return m_value; }

private:
    std::uint64_t m_value = 0x243f6a8885a308d3u;
};

bool isKept(std::string_view table)
{
    if (table == "run" || table == queries) return true;
    return std::ranges::any_of(runTables(), [&](const RunTable& known) { return known.name == table; });
}

// Where a row of the table names its run; none: the row is the file's own. What is before that is not hashed: it
// differs where the run is copied to.
std::optional<int> runColumn(std::string_view table)
{
    if (table == queries || table == sequence) return std::nullopt;
    return table == stepLog ? 1 : 0;
}

int firstHashed(std::string_view table)
{
    const std::optional<int> column = runColumn(table);
    return column ? *column + 1 : 0;
}

// Columns first … of the statement's row.
std::uint64_t hashOf(const Statement& row, int first)
{
    Hash hash;
    const int columns = sqlite3_column_count(row.handle());
    for (int column = first; column < columns; ++column) hash.add(sqlite3_column_value(row.handle(), column));
    return hash.value();
}

Result<TableDigests::Sum> sumOf(Database& database, std::string_view table, std::int64_t run,
                                std::string_view schema = "main")
{
    TableDigests::Sum sum;
    const std::string of = !runColumn(table) ? "?1 IS NOT NULL" : table == "run" ? "id=?" : "run=?";
    STAGEWRIGHT_CHECK(forEachRow(database, fmt::format("SELECT * FROM {}.{} WHERE {}", schema, table, of), run,
                                 [&](const Statement& row) -> Result<void> {
                                     ++sum.rows;
                                     sum.hash += hashOf(row, firstHashed(table));
                                     return {};
                                 }));
    return sum;
}

std::uint64_t hashOfName(std::int64_t run, std::string_view table)
{
    Hash hash;
    hash.add(static_cast<std::uint64_t>(run));
    hash.add(table.data(), table.size());
    return hash.value();
}

Result<TableDigests::Sum> sumOfNames(Database& database, std::optional<std::int64_t> run = {})
{
    TableDigests::Sum sum;
    STAGEWRIGHT_CHECK(forEachRow(
        database,
        fmt::format("SELECT run, name FROM main.table_digest WHERE ({} OR run=?1) AND NOT (run=0 AND name='{}')",
                    run ? "0" : "1", digestTable),
        run.value_or(0), [&](const Statement& row) -> Result<void> {
            ++sum.rows;
            sum.hash += hashOfName(row.integer(0), row.text(1));
            return {};
        }));
    return sum;
}

Result<std::optional<TableDigests::Sum>> stored(Database& database, std::int64_t run, std::string_view table)
{
    STAGEWRIGHT_TRY(auto statement, database.cached("SELECT rows, hash FROM main.table_digest WHERE run=? AND name=?"));
    statement->bind(run).bind(table);
    STAGEWRIGHT_TRY(const auto row, database.step(*statement));
    std::optional<TableDigests::Sum> sum;
    if (row) sum = TableDigests::Sum{statement->integer(0), static_cast<std::uint64_t>(statement->integer(1))};
    statement->reset();
    return sum;
}

Result<void> store(Database& database, std::int64_t run, std::string_view table, const TableDigests::Sum& sum)
{
    STAGEWRIGHT_TRY(auto statement,
                    database.cached("INSERT OR REPLACE INTO main.table_digest(run, name, rows, hash) VALUES(?,?,?,?)"));
    statement->bind(run).bind(table).bind(sum.rows).bind(static_cast<std::int64_t>(sum.hash));
    return database.run(*statement);
}

} // namespace

TableDigests::TableDigests(sqlite3* handle) : m_handle(handle)
{
    sqlite3_preupdate_hook(m_handle, changed, this);
    sqlite3_rollback_hook(m_handle, rolledBack, this);
}

TableDigests::~TableDigests()
{
    sqlite3_preupdate_hook(m_handle, nullptr, nullptr);
    sqlite3_rollback_hook(m_handle, nullptr, nullptr);
}

void TableDigests::rolledBack(void* self)
{
    auto& digests = *static_cast<TableDigests*>(self);
    digests.m_changes.clear();
    digests.m_names = {};
    digests.m_lost = digests.m_taken = false;
}

void TableDigests::changed(void* self, sqlite3* handle, int operation, const char* schema, const char* table,
                           sqlite3_int64, sqlite3_int64)
{
    try {
        static_cast<TableDigests*>(self)->count(handle, operation, schema, table);
    } catch (const std::bad_alloc&) { // which SQLite can't pass on
        static_cast<TableDigests*>(self)->m_lost = true;
    }
}

void TableDigests::count(sqlite3* handle, int operation, const char* schema, const char* table)
{
    if (std::strcmp(schema, "main") != 0 || !isKept(table)) return;
    const std::optional<int> ofRun = runColumn(table);
    const int columns = sqlite3_preupdate_count(handle);
    const auto add = [&](auto value, int sign) {
        Hash hash;
        sqlite3_value* at = nullptr;
        std::int64_t run = 0;
        for (int column = 0; column < columns; ++column) {
            if (value(handle, column, &at) != SQLITE_OK) {
                m_lost = true;
                return;
            }
            if (column == ofRun) run = sqlite3_value_int64(at);
            if (column >= firstHashed(table)) hash.add(at);
        }
        Sum& sum = m_changes[{run, table}];
        sum.rows += sign;
        sum.hash += sign > 0 ? hash.value() : 0 - hash.value();
    };
    if (operation != SQLITE_INSERT) add(sqlite3_preupdate_old, -1);
    if (operation != SQLITE_DELETE) add(sqlite3_preupdate_new, +1);
}

Result<void> TableDigests::put(Database& database, std::int64_t run, std::string_view table, const Sum& sum, bool isNew)
{
    if (isNew) {
        ++m_names.rows;
        m_names.hash += hashOfName(run, table);
    }
    return store(database, run, table, sum);
}

Result<void> TableDigests::takeOver(Database& database, std::int64_t from, std::int64_t to)
{
    std::erase_if(m_changes, [&](const auto& change) { return change.first.first == to; });
    m_taken = true;
    STAGEWRIGHT_TRY(const auto any,
                    database.integer("SELECT count(*) FROM other.sqlite_schema WHERE name='table_digest'"));
    if (any == 0) return {};
    const auto before = sumOf(database, "run", from, "other"), after = sumOf(database, "run", to);
    if (!before || !after) return tl::unexpected(before ? after.error() : before.error());
    return forEachRow(database, "SELECT name, rows, hash FROM other.table_digest WHERE run=?", from,
                      [&](const Statement& row) -> Result<void> {
                          const std::string table = row.text(0);
                          Sum sum{row.integer(1), static_cast<std::uint64_t>(row.integer(2))};
                          if (table == "run") sum.hash += after->hash - before->hash;
                          return put(database, to, table, sum, true);
                      });
}

// The digest as the changes leave it. The first one of a table whose rows an earlier version wrote counts them all.
Result<TableDigests::Sum> TableDigests::after(Database& database, std::int64_t run, std::string_view table,
                                              const Sum& change, const std::optional<Sum>& before)
{
    if (!before && (run == 0 || table == stepLog)) return sumOf(database, table, run);
    Sum sum = before.value_or(Sum{});
    sum.rows += change.rows;
    sum.hash += change.hash;
    return sum;
}

Result<void> TableDigests::removeAll(Database& database, std::int64_t run)
{
    STAGEWRIGHT_TRY(const auto gone, sumOfNames(database, run));
    m_names.rows -= gone.rows;
    m_names.hash -= gone.hash;
    STAGEWRIGHT_TRY(auto removed,
                    bound(database, "DELETE FROM main.table_digest WHERE run=?", [&](Statement& s) { s.bind(run); }));
    return database.run(removed);
}

Result<void> TableDigests::flushNames(Database& database)
{
    const Sum change = std::exchange(m_names, {});
    if (change.rows == 0 && change.hash == 0) return {};
    STAGEWRIGHT_TRY(const auto before, stored(database, 0, digestTable));
    if (!before) return countDigests(database);
    return store(database, 0, digestTable, {before->rows + change.rows, before->hash + change.hash});
}

Result<void> TableDigests::flush(Database& database)
{
    if (m_lost) return fail(ErrorCode::Failed, "file " + database.path() + ": out of memory", "free some memory");
    if (m_changes.empty() && !m_taken) return {};
    const Changes changes = std::exchange(m_changes, {});
    std::map<std::int64_t, bool> known; // by run
    bool runsChanged = std::exchange(m_taken, false);
    for (const auto& [key, change] : changes) {
        const auto& [run, table] = key;
        runsChanged = runsChanged || table == "run";
        if (known.contains(run) && !known[run]) continue;
        STAGEWRIGHT_TRY(const auto before, stored(database, run, table));
        if (!before && !known.contains(run)) {
            STAGEWRIGHT_TRY(const auto header, stored(database, run, "run"));
            const auto made = changes.find({run, "run"});
            known[run] = run == 0 || header || (made != changes.end() && made->second.rows == 1);
            if (!known[run]) continue;
        }
        STAGEWRIGHT_TRY(const auto sum, after(database, run, table, change, before));
        if (table == "run" && sum.rows == 0) {
            if (auto done = removeAll(database, run); !done) return done;
            known[run] = false; // tables that come after it in the order are empty, too
            continue;
        }
        if (auto done = put(database, run, table, sum, !before); !done) return done;
    }
    if (runsChanged)
        if (auto done = flushSequence(database); !done) return done;
    return flushNames(database);
}

// The numbering of runs.
Result<void> TableDigests::flushSequence(Database& database)
{
    STAGEWRIGHT_TRY(const auto counter, sumOf(database, sequence, 0));
    STAGEWRIGHT_TRY(const auto before, stored(database, 0, sequence));
    if (before && before->hash == counter.hash) return {};
    return put(database, 0, sequence, counter, !before);
}

Result<void> countDigests(Database& database)
{
    STAGEWRIGHT_TRY(const auto all, sumOfNames(database));
    return store(database, 0, digestTable, all);
}

namespace {

// The digest of a table and what its rows give, seen at one time; empty: they agree, or there is none where there may
// be none.
Result<std::optional<bool>> tableHolds(Database& database, std::int64_t run, std::string_view table, bool recording)
{
    STAGEWRIGHT_TRY(const auto there,
                    database.integer(fmt::format("SELECT count(*) FROM main.sqlite_schema WHERE name='{}'", table)));
    STAGEWRIGHT_TRY(const auto kept, stored(database, run, table));
    if (!kept && (run == 0 || there == 0 || table == stepLog)) return std::optional<bool>(); // of an earlier version
    if (table == stepLog && recording) return std::optional<bool>(true);
    STAGEWRIGHT_TRY(const auto sum, sumOf(database, table, run));
    const TableDigests::Sum before = kept.value_or(TableDigests::Sum{});
    if (before.rows != sum.rows || before.hash != sum.hash) return std::optional<bool>(false);
    return kept ? std::optional<bool>(true) : std::optional<bool>();
}

} // namespace

Result<std::optional<bool>> tablesHold(Database& database, std::int64_t run, bool recording)
{
    STAGEWRIGHT_TRY(const auto header, stored(database, run, "run"));
    STAGEWRIGHT_TRY(const auto digests,
                    database.integer(fmt::format("SELECT count(*) FROM main.table_digest WHERE run={}", run)));
    if (!header) return digests > 0 ? std::optional(false) : std::optional<bool>(); // all or none
    std::int64_t found = 0;
    std::vector<std::string_view> tables{"run"};
    for (const RunTable& table : runTables()) tables.push_back(table.name);
    for (const std::string_view table : tables) {
        STAGEWRIGHT_CHECK(database.execute("SAVEPOINT digest"));
        auto holds = tableHolds(database, run, table, recording);
        database.quietly("RELEASE digest");
        if (!holds || *holds == false) return holds;
        found += *holds ? 1 : 0;
    }
    return std::optional<bool>(recording || digests == found);
}

Result<void> checkFileDigests(Database& database)
{
    STAGEWRIGHT_TRY(const auto there,
                    database.integer("SELECT count(*) FROM main.sqlite_schema WHERE name='table_digest'"));
    if (there == 0) return {};
    const auto damaged = [&](std::string_view what) {
        return fail(ErrorCode::Unreadable,
                    fmt::format("file {}: damaged ({} changed since it was written)", database.path(), what),
                    "restore it from a copy");
    };
    STAGEWRIGHT_TRY(
        const auto strays,
        database.integer(
            "SELECT count(*) FROM main.table_digest WHERE (run<>0 AND run NOT IN (SELECT id FROM main.run)) OR "
            "(run=0 AND name NOT IN ('saved_query', 'sqlite_sequence', 'table_digest')) OR rows<0 OR "
            "typeof(hash)<>'integer' OR typeof(rows)<>'integer'"));
    if (strays > 0) return damaged("its digests");
    const auto kept = stored(database, 0, digestTable);
    const auto version = database.integer("PRAGMA user_version");
    const auto found = sumOfNames(database);
    if (!kept || !version || !found)
        return tl::unexpected(!kept ? kept.error() : !version ? version.error() : found.error());
    if (!*kept ? *version >= digestsCountedSince : (*kept)->rows != found->rows || (*kept)->hash != found->hash)
        return damaged("its digests");
    for (const std::string_view table : {queries, sequence}) {
        STAGEWRIGHT_TRY(const auto holds, tableHolds(database, 0, table, false));
        if (holds == false) return damaged(table == queries ? "its saved queries" : "its numbering of runs");
    }
    return {};
}

} // namespace stagewright
