#include "traces/store/trust.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "schedules/base/shown_text.h"
#include "traces/store/guarded_files.h"
#include "traces/store/schema.h"

namespace stagewright {

namespace {

constexpr std::int64_t heapBytes = std::int64_t{512} << 20;

struct Entry {
    std::string type, table, sql;
};
// SQLite's names don't tell large letters from small ones.
struct OtherName {
    bool operator()(const std::string& a, const std::string& b) const
    {
        return sqlite3_stricmp(a.c_str(), b.c_str()) < 0;
    }
};
using Schema = std::map<std::string, Entry, OtherName>;

Result<Schema> schemaOf(Database& database)
{
    Schema schema;
    STAGEWRIGHT_TRY(auto rows, database.prepare("SELECT type, name, tbl_name, sql FROM main.sqlite_schema"));
    for (;;) {
        STAGEWRIGHT_TRY(const auto row, database.step(rows));
        if (!row) return schema;
        const std::string name = rows.text(1);
        if (!schema.emplace(name, Entry{rows.text(0), rows.text(2), rows.text(3)}).second)
            return fail(ErrorCode::Unreadable,
                        fmt::format("file {}: damaged: it has two of the name {}", database.path(),
                                    shownText(name.substr(0, 80))),
                        "don't open it, or take its runs from a copy that you trust");
    }
}

Result<const Schema*> knownSchema(int version)
{
    static std::mutex mutex;
    static std::map<int, Schema> known;
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(version); found != known.end()) return &found->second;
    STAGEWRIGHT_TRY(auto empty, Database::open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
    STAGEWRIGHT_CHECK(migrate(*empty, 0, migrations().first(static_cast<std::size_t>(version))));
    STAGEWRIGHT_TRY(auto schema, schemaOf(*empty));
    return &(known[version] = std::move(schema));
}

bool hasVirtualName(const std::string& name)
{
    constexpr std::array<const char*, 4> names{"spans", "memory", "edges", "span_bounds"};
    return std::any_of(names.begin(), names.end(),
                       [&](const char* one) { return sqlite3_stricmp(one, name.c_str()) == 0; }) ||
           sqlite3_strnicmp(name.c_str(), "report_", 7) == 0;
}

// What SQLite makes by itself: no statement can.
bool isOfSqlite(const std::string& name, const Entry& entry)
{
    if (entry.type == "index") return name.starts_with("sqlite_autoindex_") && entry.sql.empty();
    return entry.type == "table" &&
           ((name == "sqlite_sequence" && entry.sql == "CREATE TABLE sqlite_sequence(name,seq)") ||
            name == "sqlite_stat1" || name == "sqlite_stat4") &&
           entry.sql.starts_with("CREATE TABLE sqlite_");
}

// A row's text makes what the row says, as SQLite writes it: it runs the text whatever the row says.
bool saysWhatItMakes(const std::string& name, const Entry& entry)
{
    std::string_view sql = entry.sql;
    const auto takes = [&sql](std::string_view words) {
        if (!sql.starts_with(words)) return false;
        sql.remove_prefix(words.size());
        return true;
    };
    if (entry.type == "table" ? !takes("CREATE TABLE ")
                              : entry.type != "index" || (!takes("CREATE INDEX ") && !takes("CREATE UNIQUE INDEX ")))
        return false;
    if (sql.empty()) return false;
    const char quote = sql.front() == '[' ? ']' : sql.front();
    std::string made;
    if (quote == ']' || quote == '"' || quote == '`' || quote == '\'') {
        for (std::size_t i = 1; i < sql.size(); ++i) {
            if (sql[i] == quote && (quote == ']' || i + 1 == sql.size() || sql[i + 1] != quote)) break;
            if (sql[i] == quote) ++i;
            made += sql[i];
        }
    } else {
        for (const char letter : sql) {
            const auto byte = static_cast<unsigned char>(letter);
            if (byte < 0x80 && std::isalnum(byte) == 0 && letter != '_' && letter != '$') break;
            made += letter;
        }
    }
    return made == name;
}

double computedSeconds() // of this thread
{
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

} // namespace

Result<void> limitFor(Database& database, std::int64_t fileBytes) { return limitFor(database, fileBytes, fileBytes); }

Result<void> limitFor(Database& database, std::int64_t fileBytes, std::int64_t temporaryFor)
{
    constexpr std::int64_t temporaryTimes = 8; // steps that are not folded are compressed
    allowTemporaryFiles(std::max<std::int64_t>(leastTemporaryBytes, temporaryTimes * temporaryFor));
    constexpr std::int64_t leastLength = std::int64_t{256} << 20, mostLength = 1'000'000'000;
    const auto limit = [&](int which, std::int64_t value) {
        sqlite3_limit(database.handle(), which, static_cast<int>(value));
    };
    // no text or blob is longer than its file, but that may grow
    limit(SQLITE_LIMIT_LENGTH, std::clamp(fileBytes, leastLength, mostLength));
    limit(SQLITE_LIMIT_SQL_LENGTH, 16 << 20);
    limit(SQLITE_LIMIT_COLUMN, 500);
    limit(SQLITE_LIMIT_EXPR_DEPTH, 200);
    limit(SQLITE_LIMIT_COMPOUND_SELECT, 100);
    limit(SQLITE_LIMIT_ATTACHED, 4);
    limit(SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000);
    limit(SQLITE_LIMIT_TRIGGER_DEPTH, 1);
    limit(SQLITE_LIMIT_WORKER_THREADS, 0);
    const std::int64_t heap = heapBytes + 2 * std::max<std::int64_t>(0, fileBytes); // of all files that are open
    if (const auto before = sqlite3_hard_heap_limit64(-1); before < heap) sqlite3_hard_heap_limit64(heap);
    return database.execute("PRAGMA cell_size_check=1");
}

Result<std::vector<std::string>> checkSchema(Database& database, int version)
{
    STAGEWRIGHT_TRY(const auto known, knownSchema(version));
    STAGEWRIGHT_TRY(const auto there, schemaOf(database));
    const auto refused = [&](const std::string& what) {
        return fail(ErrorCode::Unreadable, fmt::format("file {}: {}", database.path(), what),
                    "don't open it, or take its runs from a copy that you trust");
    };
    for (const auto& [name, entry] : *known)
        if (!there.contains(name)) return refused(fmt::format("damaged: its {} {} is missing", entry.type, name));
    std::vector<std::string> ignored;
    for (const auto& [name, entry] : there) {
        const std::string shown = shownText(name.substr(0, 80));
        if (const auto ours = known->find(name); ours != known->end()) {
            if (ours->second.type != entry.type || ours->second.table != entry.table || ours->second.sql != entry.sql)
                return refused(fmt::format("its {} {} is not the one that stagewright makes", entry.type, shown));
            continue;
        }
        if (isOfSqlite(name, entry)) continue;
        if (entry.type == "trigger" || entry.type == "view")
            return refused(
                fmt::format("it has a {} named {}, which no version of stagewright makes", entry.type, shown));
        if (hasVirtualName(name))
            return refused(fmt::format("it has a {} named {}, which hides one of stagewright", entry.type, shown));
        if (!saysWhatItMakes(name, entry))
            return refused(
                fmt::format("it has a {} named {} that makes something else, which no version of stagewright does",
                            shownText(entry.type.substr(0, 80)), shown));
        ignored.push_back(shown);
    }
    return ignored;
}

Result<void> checkPages(Database& database, bool all)
{
    STAGEWRIGHT_TRY(auto check,
                    database.prepare(all ? "PRAGMA main.integrity_check(1)" : "PRAGMA main.quick_check(1)"));
    STAGEWRIGHT_TRY(const auto row, database.step(check));
    const std::string found = row ? check.text(0) : std::string("ok");
    if (found == "ok") return {};
    return fail(ErrorCode::Unreadable,
                fmt::format("file {}: damaged ({})", database.path(), shownText(found.substr(0, 200))),
                "restore it from a copy, or record again");
}

std::int64_t mostRowsFor(std::int64_t fileBytes)
{
    constexpr std::int64_t least = 2'000'000, bytesEach = 2;
    return least + std::max<std::int64_t>(0, fileBytes) / bytesEach;
}

double secondsFor(std::int64_t fileBytes)
{
    constexpr double least = 4, bytesEach = 10e6;
    return least + static_cast<double>(fileBytes) / bytesEach;
}

double secondsForQuery(std::int64_t fileBytes)
{
    constexpr double least = 60, bytesEach = 1e6;
    return least + static_cast<double>(fileBytes) / bytesEach;
}

Deadline::Deadline(Database& database, double seconds)
    : m_seconds(seconds), m_until(computedSeconds() + seconds), m_watch(database, [this] { return passed(); })
{
}

void Deadline::renew() { m_until = computedSeconds() + m_seconds; }

bool Deadline::passed() const { return computedSeconds() > m_until; }

} // namespace stagewright
