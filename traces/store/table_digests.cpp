#include "traces/store/table_digests.h"

#include <cmath>
#include <cstring>
#include <new>
#include <vector>

#include <fmt/format.h>

#include "traces/store/rows.h"
#include "traces/store/schema.h"

// Debian's SQLite has the hook, its header only on request.
extern "C" {
void* sqlite3_preupdate_hook(sqlite3*, void (*)(void*, sqlite3*, int, char const*, char const*, sqlite3_int64, sqlite3_int64), void*);
int sqlite3_preupdate_old(sqlite3*, int, sqlite3_value**);
int sqlite3_preupdate_new(sqlite3*, int, sqlite3_value**);
int sqlite3_preupdate_count(sqlite3*);
}

namespace stagewright {

namespace {

constexpr std::string_view queries = "saved_query"; // the file's own: its first column does not name one
constexpr std::string_view sequence = "sqlite_sequence";

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
            const void* bytes = type == SQLITE_TEXT ? static_cast<const void*>(sqlite3_value_text(value)) : sqlite3_value_blob(value);
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
    if (table == "step_log") return false; // has checksums
    for (const RunTable& known : runTables())
        if (known.name == table) return true;
    return false;
}

// Columns first … of the statement's row.
std::uint64_t hashOf(const Statement& row, int first)
{
    Hash hash;
    const int columns = sqlite3_column_count(row.handle());
    for (int column = first; column < columns; ++column) hash.add(sqlite3_column_value(row.handle(), column));
    return hash.value();
}

Result<TableDigests::Sum> sumOf(Database& database, std::string_view table, std::int64_t run)
{
    TableDigests::Sum sum;
    const bool own = table == queries || table == sequence;
    auto read = forEachRow(database, own ? fmt::format("SELECT * FROM main.{} WHERE ?1 IS NOT NULL", table) : fmt::format("SELECT * FROM main.{} WHERE {}=?", table, table == "run" ? "id" : "run"), run,
                           [&](const Statement& row) -> Result<void> {
                               ++sum.rows;
                               sum.hash += hashOf(row, own ? 0 : 1);
                               return {};
                           });
    if (!read) return tl::unexpected(std::move(read.error()));
    return sum;
}

Result<std::optional<TableDigests::Sum>> stored(Database& database, std::int64_t run, std::string_view table)
{
    auto statement = database.cached("SELECT rows, hash FROM main.table_digest WHERE run=? AND name=?");
    if (!statement) return tl::unexpected(statement.error());
    (*statement)->bind(run).bind(table);
    const auto row = database.step(**statement);
    if (!row) return tl::unexpected(row.error());
    std::optional<TableDigests::Sum> sum;
    if (*row) sum = TableDigests::Sum{(*statement)->integer(0), static_cast<std::uint64_t>((*statement)->integer(1))};
    (*statement)->reset();
    return sum;
}

Result<void> store(Database& database, std::int64_t run, std::string_view table, const TableDigests::Sum& sum)
{
    auto statement = database.cached("INSERT OR REPLACE INTO main.table_digest(run, name, rows, hash) VALUES(?,?,?,?)");
    if (!statement) return tl::unexpected(statement.error());
    (*statement)->bind(run).bind(table).bind(sum.rows).bind(static_cast<std::int64_t>(sum.hash));
    return database.run(**statement);
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
    static_cast<TableDigests*>(self)->m_changes.clear();
    static_cast<TableDigests*>(self)->m_lost = false;
}

void TableDigests::changed(void* self, sqlite3* handle, int operation, const char* schema, const char* table, sqlite3_int64, sqlite3_int64)
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
    const bool own = table == queries;
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
            if (column == 0 && !own)
                run = sqlite3_value_int64(at);
            else
                hash.add(at);
        }
        Sum& sum = m_changes[{run, table}];
        sum.rows += sign;
        sum.hash += sign > 0 ? hash.value() : 0 - hash.value();
    };
    if (operation != SQLITE_INSERT) add(sqlite3_preupdate_old, -1);
    if (operation != SQLITE_DELETE) add(sqlite3_preupdate_new, +1);
}

void TableDigests::forget(std::int64_t run)
{
    m_forgot = true;
    std::erase_if(m_changes, [&](const auto& change) { return change.first.first == run; });
}

Result<void> TableDigests::flush(Database& database)
{
    if (m_lost) return fail(ErrorCode::Failed, "file " + database.path() + ": out of memory", "free some memory");
    if (m_changes.empty() && !m_forgot) return {};
    m_forgot = false;
    const Changes changes = std::exchange(m_changes, {});
    std::map<std::int64_t, bool> known; // by run
    for (const auto& [key, sum] : changes) {
        const auto& [run, table] = key;
        if (!known.contains(run)) {
            const auto header = stored(database, run, "run");
            if (!header) return tl::unexpected(header.error());
            const auto made = changes.find({run, "run"});
            known[run] = run == 0 || *header || (made != changes.end() && made->second.rows == 1);
        }
        if (!known[run]) continue;
        const auto before = stored(database, run, table);
        if (!before) return tl::unexpected(before.error());
        Sum after = before->value_or(Sum{});
        if (run == 0 && !*before) { // the first of them
            const auto all = sumOf(database, table, 0);
            if (!all) return tl::unexpected(all.error());
            after = *all;
        } else {
            after.rows += sum.rows;
            after.hash += sum.hash;
        }
        if (table == "run" && after.rows == 0) {
            auto removed = bound(database, "DELETE FROM main.table_digest WHERE run=?", [&, id = run](Statement& s) { s.bind(id); });
            if (!removed) return tl::unexpected(removed.error());
            if (auto done = database.run(*removed); !done) return done;
            known[run] = false; // tables that come after it in the order are empty, too
            continue;
        }
        if (auto done = store(database, run, table, after); !done) return done;
    }
    const auto counter = sumOf(database, sequence, 0);
    if (!counter) return tl::unexpected(counter.error());
    const auto before = stored(database, 0, sequence);
    if (!before) return tl::unexpected(before.error());
    if (*before && (*before)->hash == counter->hash) return {};
    return store(database, 0, sequence, *counter);
}

Result<std::optional<bool>> tablesHold(Database& database, std::int64_t run)
{
    const auto header = stored(database, run, "run");
    if (!header) return tl::unexpected(header.error());
    std::int64_t found = 0, digests = 0;
    auto counted = forEachRow(database, "SELECT count(*) FROM main.table_digest WHERE run=?", run, [&](const Statement& row) -> Result<void> {
        digests = row.integer(0);
        return {};
    });
    if (!counted) return tl::unexpected(std::move(counted.error()));
    if (!*header) return digests > 0 ? std::optional(false) : std::optional<bool>(); // all or none
    std::vector<std::string> names{"run"};
    for (const RunTable& table : runTables())
        if (isKept(table.name)) names.emplace_back(table.name);
    for (const std::string& name : names) {
        const auto kept = stored(database, run, name);
        if (!kept) return tl::unexpected(kept.error());
        const auto there = database.integer(fmt::format("SELECT count(*) FROM main.sqlite_schema WHERE name='{}'", name));
        if (!there) return tl::unexpected(there.error());
        if (*there == 0 && !*kept) continue; // of an older version
        const auto sum = sumOf(database, name, run);
        if (!sum) return tl::unexpected(sum.error());
        found += kept->has_value() ? 1 : 0;
        const TableDigests::Sum before = kept->value_or(TableDigests::Sum{});
        if (before.rows != sum->rows || before.hash != sum->hash) return std::optional<bool>(false);
    }
    return std::optional<bool>(digests == found);
}

Result<void> checkFileDigests(Database& database)
{
    const auto there = database.integer("SELECT count(*) FROM main.sqlite_schema WHERE name='table_digest'");
    if (!there) return tl::unexpected(there.error());
    if (*there == 0) return {};
    const auto damaged = [&](std::string_view what) {
        return fail(ErrorCode::Unreadable, fmt::format("file {}: damaged ({} changed since it was written)", database.path(), what), "restore it from a copy");
    };
    const auto strays = database.integer("SELECT count(*) FROM main.table_digest WHERE (run<>0 AND run NOT IN (SELECT id FROM main.run)) OR "
                                         "(run=0 AND name NOT IN ('saved_query', 'sqlite_sequence')) OR rows<0 OR typeof(hash)<>'integer' OR typeof(rows)<>'integer'");
    if (!strays) return tl::unexpected(strays.error());
    if (*strays > 0) return damaged("its digests");
    for (const std::string_view table : {queries, sequence}) {
        const auto kept = stored(database, 0, table);
        if (!kept) return tl::unexpected(kept.error());
        if (!*kept) continue;
        const auto sum = sumOf(database, table, 0);
        if (!sum) return tl::unexpected(sum.error());
        if ((*kept)->rows != sum->rows || (*kept)->hash != sum->hash) return damaged(table == queries ? "its saved queries" : "its numbering of runs");
    }
    return {};
}

} // namespace stagewright
