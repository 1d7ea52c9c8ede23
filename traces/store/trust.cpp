#include "traces/store/trust.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "schedules/base/shown_text.h"
#include "traces/store/schema.h"

namespace stagewright {

namespace {

constexpr std::int64_t heapBytes = std::int64_t{512} << 20;

struct Entry {
    std::string type, table, sql;
};
using Schema = std::map<std::string, Entry>;

Result<Schema> schemaOf(Database& database)
{
    Schema schema;
    auto rows = database.prepare("SELECT type, name, tbl_name, sql FROM main.sqlite_schema");
    if (!rows) return tl::unexpected(rows.error());
    for (;;) {
        const auto row = database.step(*rows);
        if (!row) return tl::unexpected(row.error());
        if (!*row) return schema;
        schema[rows->text(1)] = {rows->text(0), rows->text(2), rows->text(3)};
    }
}

Result<const Schema*> knownSchema(int version)
{
    static std::mutex mutex;
    static std::map<int, Schema> known;
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(version); found != known.end()) return &found->second;
    auto empty = Database::open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    if (!empty) return tl::unexpected(empty.error());
    if (auto done = migrate(**empty, 0, migrations().first(static_cast<std::size_t>(version))); !done) return tl::unexpected(done.error());
    auto schema = schemaOf(**empty);
    if (!schema) return tl::unexpected(schema.error());
    return &(known[version] = std::move(*schema));
}

bool hasVirtualName(std::string_view name)
{
    constexpr std::array<std::string_view, 4> names{"spans", "memory", "edges", "span_bounds"};
    return std::find(names.begin(), names.end(), name) != names.end() || name.starts_with("report_");
}

double computedSeconds() // of this thread
{
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

} // namespace

Result<void> limitFor(Database& database, std::int64_t fileBytes)
{
    constexpr std::int64_t leastLength = std::int64_t{256} << 20, mostLength = 1'000'000'000;
    const auto limit = [&](int which, std::int64_t value) { sqlite3_limit(database.handle(), which, static_cast<int>(value)); };
    limit(SQLITE_LIMIT_LENGTH, std::clamp(fileBytes, leastLength, mostLength)); // no text or blob is longer than its file, but that may grow
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
    const auto known = knownSchema(version);
    if (!known) return tl::unexpected(known.error());
    const auto there = schemaOf(database);
    if (!there) return tl::unexpected(there.error());
    const auto refused = [&](const std::string& what) {
        return fail(ErrorCode::Unreadable, fmt::format("file {}: {}", database.path(), what), "don't open it, or take its runs from a copy that you trust");
    };
    for (const auto& [name, entry] : **known)
        if (!there->contains(name)) return refused(fmt::format("damaged: its {} {} is missing", entry.type, name));
    std::vector<std::string> ignored;
    for (const auto& [name, entry] : *there) {
        const std::string shown = shownText(name.substr(0, 80));
        if (const auto ours = (*known)->find(name); ours != (*known)->end()) {
            if (ours->second.type != entry.type || ours->second.table != entry.table || ours->second.sql != entry.sql) return refused(fmt::format("its {} {} is not the one that stagewright makes", entry.type, shown));
            continue;
        }
        if (name.starts_with("sqlite_")) continue; // SQLite's own, which no statement can make
        if (entry.type == "trigger" || entry.type == "view") return refused(fmt::format("it has a {} named {}, which no version of stagewright makes", entry.type, shown));
        if (hasVirtualName(name)) return refused(fmt::format("it has a {} named {}, which hides one of stagewright", entry.type, shown));
        ignored.push_back(shown);
    }
    return ignored;
}

Result<void> checkPages(Database& database, bool all)
{
    auto check = database.prepare(all ? "PRAGMA main.integrity_check(1)" : "PRAGMA main.quick_check(1)");
    if (!check) return tl::unexpected(check.error());
    const auto row = database.step(*check);
    if (!row) return tl::unexpected(row.error());
    const std::string found = *row ? check->text(0) : std::string("ok");
    if (found == "ok") return {};
    return fail(ErrorCode::Unreadable, fmt::format("file {}: damaged ({})", database.path(), shownText(found.substr(0, 200))), "restore it from a copy, or record again");
}

double secondsFor(std::int64_t fileBytes)
{
    constexpr double least = 4, bytesEach = 10e6;
    return least + static_cast<double>(fileBytes) / bytesEach;
}

Deadline::Deadline(Database& database, double seconds) : m_seconds(seconds), m_until(computedSeconds() + seconds), m_watch(database, [this] { return passed(); }) {}

void Deadline::renew()
{
    m_until = computedSeconds() + m_seconds;
}

bool Deadline::passed() const
{
    return computedSeconds() > m_until;
}

} // namespace stagewright
