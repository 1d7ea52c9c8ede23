#include "traces/store/step_log.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <zlib.h>

#include "traces/store/codec.h"
#include "traces/store/rows.h"
#include "traces/store/schema.h"
#include "traces/store/step_tables.h"
#include "traces/store/table_digests.h"

namespace stagewright {

namespace {

constexpr std::size_t headBytes = 9;
// of a step's rows to their compressed bytes; what zlib makes of ours is below 20
constexpr std::size_t mostRatio = 64;
constexpr std::size_t mostCompressed = std::size_t{64} << 10; // larger steps are blocks, which are small already
constexpr std::size_t stepsBetween = 64;                      // read, between two looks at the time
constexpr int stepsAtOnce = 512;                              // folded in a transaction
constexpr std::size_t bytesAtOnce = std::size_t{4} << 20;     // or these: what they leave free, those after them use

void putNumber(std::vector<std::byte>& bytes, std::size_t at, std::uint32_t value)
{
    for (std::size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<std::byte>(value >> (8 * i) & 0xff);
}

std::uint32_t numberAt(std::span<const std::byte> bytes, std::size_t at)
{
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value |= std::to_integer<std::uint32_t>(bytes[at + i]) << (8 * i);
    return value;
}

std::string insertInto(std::string_view prefix, const StepTable& table)
{
    std::string marks;
    for (int i = 0; i < table.count; ++i) marks += ",?";
    return fmt::format("INSERT OR IGNORE INTO {}{}(run, {}) VALUES(?{})", prefix, table.name, table.columns, marks);
}

// The statement for a table, made once: there is no time to make its text for every row.
const std::string& insertStatement(std::string_view prefix, std::size_t table)
{
    const auto make = [](std::string_view before) {
        std::vector<std::string> made;
        for (std::size_t i = 0; i < stepTableCount(); ++i) made.push_back(insertInto(before, stepTable(i)));
        return made;
    };
    static const std::vector<std::string> own = make("main."), temporary = make("temp.log_");
    return prefix == "main." ? own[table] : temporary[table];
}

void bindTotals(Statement& statement, const LoggedStep& totals)
{
    statement.bind(totals.steps).bind(totals.spans);
    totals.empty ? statement.bindNull() : statement.bind(totals.begin);
    totals.empty ? statement.bindNull() : statement.bind(totals.end);
}

// Columns first … first + 3.
LoggedStep totalsIn(const Statement& row, int first)
{
    return {0,
            0,
            row.integer(first),
            row.integer(first + 1),
            row.integer(first + 2),
            row.integer(first + 3),
            row.isNull(first + 2)};
}

// A tree of pages that leads back into itself gives rows without end, the same ones again.
tl::unexpected<Error> notInOrder(const Database& database)
{
    return fail(ErrorCode::Unreadable, "file " + database.path() + ": damaged (its steps are not in order)",
                "restore it from a copy, or record again");
}

// Each is of a table that steps have, with as many columns.
bool areStepRows(std::span<const std::byte> rows)
{
    RowReader reader(rows);
    StoredRow row;
    while (!reader.atEnd())
        if (!reader.next(row) || row.table >= stepTableCount() ||
            row.values.size() != static_cast<std::size_t>(stepTable(row.table).count))
            return false;
    return true;
}

} // namespace

std::vector<std::byte> packStep(std::span<const std::byte> rows)
{
    std::vector<std::byte> data(headBytes);
    uLongf size = 0;
    if (rows.size() <= mostCompressed) {
        size = compressBound(static_cast<uLong>(rows.size()));
        data.resize(headBytes + size);
        if (compress2(reinterpret_cast<Bytef*>(data.data() + headBytes), &size,
                      reinterpret_cast<const Bytef*>(rows.data()), static_cast<uLong>(rows.size()), 1) != Z_OK)
            size = 0;
        data.resize(headBytes + size);
    }
    const bool compressed = size > 0 && size < rows.size() && rows.size() <= mostRatio * size;
    if (!compressed) {
        data.resize(headBytes);
        data.insert(data.end(), rows.begin(), rows.end());
    }
    data[4] = std::byte{compressed};
    putNumber(data, 5, static_cast<std::uint32_t>(rows.size()));
    putNumber(data, 0, checksum(std::span(data).subspan(4)));
    return data;
}

bool unpackStep(std::span<const std::byte> data, std::vector<std::byte>& rows)
{
    if (data.size() < headBytes || numberAt(data, 0) != checksum(data.subspan(4))) return false;
    const std::size_t size = numberAt(data, 5);
    const auto packed = data.subspan(headBytes);
    if (data[4] == std::byte{0}) {
        if (packed.size() != size) return false;
        rows.assign(packed.begin(), packed.end());
        return true;
    }
    if (data[4] != std::byte{1} || size > mostCompressed || size > mostRatio * packed.size()) return false;
    rows.resize(size);
    uLongf got = static_cast<uLongf>(size);
    return uncompress(reinterpret_cast<Bytef*>(rows.data()), &got, reinterpret_cast<const Bytef*>(packed.data()),
                      static_cast<uLong>(packed.size())) == Z_OK &&
           got == size;
}

Result<void> takeStepRows(Database& database, std::int64_t run, StepRows& rows)
{
    for (std::size_t number = 0; number < stepTableCount(); ++number) {
        const StepTable table = stepTable(number);
        STAGEWRIGHT_TRY(auto statement,
                        database.cached(fmt::format("SELECT {} FROM main.{} WHERE run=?", table.columns, table.name)));
        statement->bind(run);
        bool any = false;
        for (;;) {
            STAGEWRIGHT_TRY(const auto more, database.step(*statement));
            if (!more) break;
            any = true;
            (table.grows == "segment" ? rows.blocks : rows.facts)
                .add(static_cast<std::uint8_t>(number), *statement, 0, table.count);
        }
        statement->reset();
        if (!any) continue;
        STAGEWRIGHT_TRY(auto removed, database.cached(fmt::format("DELETE FROM main.{}", table.name)));
        if (auto done = database.run(*removed); !done) return done;
    }
    return {};
}

Result<bool> addStepRows(Database& database, std::string_view prefix, std::int64_t run, std::span<const std::byte> rows)
{
    if (!areStepRows(rows)) return false;
    RowReader reader(rows);
    StoredRow row;
    while (reader.next(row)) {
        STAGEWRIGHT_TRY(auto statement, database.cached(insertStatement(prefix, row.table)));
        statement->bind(run);
        for (const StoredValue& value : row.values) bindValue(*statement, value);
        STAGEWRIGHT_CHECK(database.run(*statement));
    }
    return true;
}

Result<LoggedStep> totalsOf(Database& database, std::int64_t run)
{
    STAGEWRIGHT_TRY(auto statement,
                    database.cached("SELECT steps, span_count, begin_ns, end_ns, (SELECT max(segment) FROM "
                                    "main.segment WHERE run=?1) FROM main.run WHERE id=?1"));
    statement->bind(run);
    STAGEWRIGHT_TRY(const auto row, database.step(*statement));
    LoggedStep totals = row ? totalsIn(*statement, 0) : LoggedStep{};
    if (row) totals.segment = statement->integer(4);
    statement->reset();
    return totals;
}

Result<void> setTotals(Database& database, std::int64_t run, const LoggedStep& totals)
{
    STAGEWRIGHT_TRY(auto statement,
                    database.cached("UPDATE main.run SET steps=?, span_count=?, begin_ns=?, end_ns=? WHERE id=?"));
    bindTotals(*statement, totals);
    statement->bind(run);
    return database.run(*statement);
}

Result<void> logStep(Database& database, std::int64_t run, const LoggedStep& step, const StepRows& rows)
{
    const std::vector<std::byte> facts = packStep(rows.facts.bytes());
    const std::vector<std::byte> blocks = packStep(rows.blocks.bytes());
    STAGEWRIGHT_TRY(auto statement,
                    database.cached("INSERT INTO main.step_log(run, segment, first_step, steps, span_count, begin_ns, "
                                    "end_ns, facts, data) VALUES(?,?,?,?,?,?,?,?,?)"));
    statement->bind(run).bind(step.segment).bind(step.firstStep);
    bindTotals(*statement, step);
    statement->bind(std::span<const std::byte>(facts)).bind(std::span<const std::byte>(blocks));
    return database.run(*statement);
}

Result<std::vector<std::int64_t>> runsWithLoggedSteps(Database& database)
{
    std::vector<std::int64_t> runs;
    STAGEWRIGHT_CHECK(forEachRow(database, "SELECT DISTINCT run FROM main.step_log WHERE id>? ORDER BY run", 0,
                                 [&](const Statement& row) -> Result<void> {
                                     runs.push_back(row.integer(0));
                                     return {};
                                 }));
    return runs;
}

Result<bool> foldSteps(Database& database, std::int64_t run, const Progress& progress)
{
    std::vector<std::byte> rows, blocks;
    std::int64_t last = 0, folded = 0, all = 0;
    bool whole = true;
    STAGEWRIGHT_TRY(auto counted,
                    bound(database, "SELECT steps FROM main.step_log WHERE run=? ORDER BY id DESC LIMIT 1",
                          [&](Statement& s) { s.bind(run); }));
    STAGEWRIGHT_TRY(const auto newest, database.step(counted));
    if (newest) all = counted.integer(0);
    counted = Statement();
    for (bool more = true; more;) {
        more = false;
        STAGEWRIGHT_TRY(auto transaction, Transaction::begin(database));
        STAGEWRIGHT_TRY(
            auto steps,
            bound(database,
                  fmt::format("SELECT id, data, facts, steps, span_count, begin_ns, end_ns FROM main.step_log "
                              "WHERE run=? AND id>? ORDER BY id LIMIT {}",
                              stepsAtOnce),
                  [&](Statement& s) { s.bind(run).bind(last); }));
        std::vector<std::int64_t> done;
        LoggedStep totals;
        int read = 0;
        std::size_t bytes = 0;
        for (;; ++read) {
            more = read == stepsAtOnce || bytes >= bytesAtOnce;
            if (more) break;
            STAGEWRIGHT_TRY(const auto row, database.step(steps));
            if (!row) break;
            bytes += steps.blob(1).size();
            if (steps.integer(0) <= last) return notInOrder(database);
            last = steps.integer(0);
            totals = totalsIn(steps, 3);
            if (!unpackStep(steps.blob(2), rows) || !unpackStep(steps.blob(1), blocks)) {
                whole = false;
                continue;
            }
            rows.insert(rows.end(), blocks.begin(), blocks.end());
            STAGEWRIGHT_TRY(const auto added, addStepRows(database, "main.", run, rows));
            if (added)
                done.push_back(last);
            else
                whole = false;
        }
        steps = Statement();
        if (read > 0) STAGEWRIGHT_CHECK(setTotals(database, run, totals));
        for (const std::int64_t id : done) {
            STAGEWRIGHT_TRY(auto removed, database.cached("DELETE FROM main.step_log WHERE id=?"));
            removed->bind(id);
            STAGEWRIGHT_CHECK(database.run(*removed));
        }
        STAGEWRIGHT_CHECK(transaction.commit());
        folded += read;
        if (more) progress.tell("closing the run", folded, std::max(folded, all));
    }
    return whole;
}

Result<void> UnfoldedSteps::makeViews(Database& database)
{
    std::string sql;
    for (std::size_t number = 0; number < stepTableCount(); ++number) {
        const StepTable table = stepTable(number);
        if (table.text) continue; // never in a step
        const bool rowid = table.name == "span_block";
        sql += fmt::format(
            "CREATE TEMP TABLE log_{0}(id INTEGER PRIMARY KEY, run, {1}); CREATE INDEX temp.log_{0}_by_run ON "
            "log_{0}(run, {2}); "
            "CREATE TEMP VIEW {0} AS SELECT {3}run, {1} FROM main.{0} UNION ALL SELECT {4}run, {1} FROM temp.log_{0};",
            table.name, table.columns,
            table.name == "span_block" ? "segment, track, first" : table.columns.substr(0, table.columns.find(',')),
            rowid ? "rowid AS rowid, " : "", rowid ? "-id AS rowid, " : "");
    }
    const std::string_view bounds = "run, segment, track, first, step, count, begin_ns, end_ns";
    sql += fmt::format("CREATE INDEX temp.log_span_bounds ON log_span_block(run, step, segment, track, first, "
                       "begin_ns, end_ns, count);"
                       "CREATE TEMP VIEW span_bounds AS SELECT rowid AS rowid, {0} FROM main.span_block UNION ALL "
                       "SELECT -id AS rowid, {0} FROM temp.log_span_block;",
                       bounds);
    const auto total = [](std::string_view column) {
        return fmt::format("iif(l.run IS NULL, r.{0}, l.{0}) AS {0}", column);
    };
    sql += "CREATE TEMP TABLE log_run(run INTEGER PRIMARY KEY, steps, span_count, begin_ns, end_ns);";
    sql += fmt::format("CREATE TEMP VIEW run AS SELECT r.id AS id, name, schedule_name, note, created_unix_ms, state, "
                       "provenance, clock, ranks, stages, microbatches, {}, "
                       "warmup_steps, {}, {}, {}, time_unit, memory_unit, schedule, realised, costs FROM main.run AS r "
                       "LEFT JOIN temp.log_run AS l ON l.run=r.id;",
                       total("steps"), total("span_count"), total("begin_ns"), total("end_ns"));
    m_views = true;
    return database.execute(sql);
}

Result<void> UnfoldedSteps::dropViews(Database& database)
{
    if (!m_views) return {};
    std::string sql = "DROP VIEW temp.run; DROP VIEW temp.span_bounds; DROP TABLE temp.log_run;";
    for (std::size_t number = 0; number < stepTableCount(); ++number)
        if (const StepTable table = stepTable(number); !table.text)
            sql += fmt::format("DROP VIEW temp.{0}; DROP TABLE temp.log_{0};", table.name);
    if (auto done = database.execute(sql); !done) return done;
    *this = {};
    return {};
}

// False: steps that were read before have been folded or removed since.
Result<bool> UnfoldedSteps::stillThere(Database& database) const
{
    for (const auto& [run, ids] : m_runs)
        for (const std::int64_t id : {ids.first, ids.second}) {
            STAGEWRIGHT_TRY(auto statement, database.cached("SELECT run FROM main.step_log WHERE id=?"));
            statement->bind(id);
            STAGEWRIGHT_TRY(const auto row, database.step(*statement));
            const bool same = row && statement->integer(0) == run;
            statement->reset();
            if (!same) return false;
        }
    return true;
}

Result<bool> UnfoldedSteps::add(Database& database, const std::function<bool()>& enough)
{
    bool ended = false;
    STAGEWRIGHT_TRY(auto steps,
                    bound(database,
                          "SELECT id, run, first_step, steps, facts, steps, span_count, begin_ns, end_ns FROM "
                          "main.step_log WHERE id>? ORDER BY id",
                          [&](Statement& s) { s.bind(m_last); }));
    std::vector<std::byte> facts;
    std::map<std::int64_t, LoggedStep> totals; // by run, with its last step
    while (!(ended = m_rows.size() % stepsBetween == 0 && !totals.empty() && enough())) {
        STAGEWRIGHT_TRY(const auto more, database.step(steps));
        if (!more) break;
        const Row row{steps.integer(0), steps.integer(1), steps.integer(2), steps.integer(3), false};
        if (row.id <= m_last) return notInOrder(database);
        m_last = row.id;
        m_runs.try_emplace(row.run, row.id, row.id).first->second.second = row.id;
        m_rows.push_back(row);
        totals[row.run] = totalsIn(steps, 5);
        bool whole = unpackStep(steps.blob(4), facts);
        if (whole) {
            STAGEWRIGHT_TRY(whole, addStepRows(database, "temp.log_", row.run, facts));
        }
        if (!whole) ++m_damaged[row.run];
    }
    for (const auto& [run, total] : totals) {
        STAGEWRIGHT_TRY(auto statement, database.cached("INSERT OR REPLACE INTO temp.log_run VALUES(?,?,?,?,?)"));
        statement->bind(run);
        bindTotals(*statement, total);
        STAGEWRIGHT_CHECK(database.run(*statement));
    }
    return ended;
}

Result<void> UnfoldedSteps::load(Database& database, Row& row)
{
    STAGEWRIGHT_TRY(auto statement, database.cached("SELECT data FROM main.step_log WHERE id=?"));
    statement->bind(row.id);
    STAGEWRIGHT_TRY(const auto there, database.step(*statement));
    std::vector<std::byte> blocks;
    bool whole = there && unpackStep(statement->blob(0), blocks);
    statement->reset();
    row.loaded = true;
    if (whole) {
        STAGEWRIGHT_TRY(whole, addStepRows(database, "temp.log_", row.run, blocks));
    }
    if (!whole) ++m_damaged[row.run];
    return {};
}

namespace {

// Temporary tables are written although the connection only reads.
template <typename Write>
Result<bool> writingTemporaries(Database& database, bool readOnly, Write write)
{
    if (readOnly) STAGEWRIGHT_CHECK(database.execute("PRAGMA query_only=0"));
    Result<bool> written = write();
    if (readOnly) STAGEWRIGHT_CHECK(database.execute("PRAGMA query_only=1"));
    return written;
}

} // namespace

Result<bool> UnfoldedSteps::catchUp(Database& database, bool readOnly, const std::function<bool()>& enough)
{
    STAGEWRIGHT_TRY(auto newest, database.cached("SELECT max(id) FROM main.step_log"));
    STAGEWRIGHT_CHECK(database.step(*newest));
    const std::int64_t last = newest->integer(0);
    newest->reset();
    STAGEWRIGHT_TRY(const auto there, stillThere(database));
    if (there && last == m_last) return false;
    return writingTemporaries(database, readOnly, [&]() -> Result<bool> {
        if (!m_views) STAGEWRIGHT_CHECK(makeViews(database));
        if (!there) {
            m_rows.clear();
            m_runs.clear();
            m_damaged.clear();
            m_last = 0;
            std::string sql = "DELETE FROM temp.log_run;";
            for (std::size_t number = 0; number < stepTableCount(); ++number)
                if (!stepTable(number).text) sql += fmt::format("DELETE FROM temp.log_{};", stepTable(number).name);
            STAGEWRIGHT_CHECK(database.execute(sql));
        }
        return add(database, enough);
    });
}

Result<bool> UnfoldedSteps::load(Database& database, bool readOnly, std::int64_t run, std::int64_t firstStep,
                                 std::int64_t lastStep, std::int64_t askedUntil, const std::function<bool()>& enough)
{
    if (m_rows.empty()) return false;
    return writingTemporaries(database, readOnly, [&]() -> Result<bool> {
        std::size_t loaded = 0;
        for (Row& row : m_rows) {
            if (row.loaded ||
                (run != everyRun && (row.run != run || row.steps <= firstStep || row.firstStep > lastStep)))
                continue;
            if (row.id <= askedUntil && loaded % stepsBetween == 0 && loaded > 0 && enough()) return true;
            STAGEWRIGHT_CHECK(load(database, row));
            ++loaded;
        }
        return false;
    });
}

std::int64_t UnfoldedSteps::damaged(std::int64_t run) const
{
    const auto found = m_damaged.find(run);
    return found == m_damaged.end() ? 0 : found->second;
}

} // namespace stagewright
