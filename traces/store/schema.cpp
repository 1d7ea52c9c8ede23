#include "traces/store/schema.h"

#include <array>
#include <limits>

#include <fmt/format.h>

#include "traces/store/table_digests.h"

namespace stagewright {

namespace {

constexpr std::string_view version1 = R"sql(
CREATE TABLE run(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    schedule_name TEXT NOT NULL,
    note TEXT NOT NULL,
    created_unix_ms INTEGER NOT NULL,
    state TEXT NOT NULL,
    provenance TEXT NOT NULL,
    clock TEXT NOT NULL,
    ranks INTEGER NOT NULL,
    stages INTEGER NOT NULL,
    microbatches INTEGER NOT NULL,
    steps INTEGER NOT NULL,
    warmup_steps INTEGER NOT NULL,
    span_count INTEGER NOT NULL,
    begin_ns INTEGER,
    end_ns INTEGER,
    time_unit INTEGER NOT NULL,
    memory_unit INTEGER NOT NULL,
    schedule TEXT,
    realised TEXT,
    costs TEXT);
CREATE TABLE run_text(run INTEGER NOT NULL, section TEXT NOT NULL, ordinal INTEGER NOT NULL, key TEXT NOT NULL,
    value TEXT NOT NULL, PRIMARY KEY(run, section, ordinal)) WITHOUT ROWID;
CREATE TABLE track(run INTEGER NOT NULL, track INTEGER NOT NULL, rank INTEGER NOT NULL, lane TEXT NOT NULL,
    name TEXT NOT NULL, PRIMARY KEY(run, track)) WITHOUT ROWID;
CREATE TABLE label(run INTEGER NOT NULL, label INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY(run, label)) WITHOUT ROWID;
CREATE TABLE segment(run INTEGER NOT NULL, segment INTEGER NOT NULL, first_span INTEGER NOT NULL, spans INTEGER NOT NULL,
    PRIMARY KEY(run, segment)) WITHOUT ROWID;
CREATE TABLE span_block(run INTEGER NOT NULL, segment INTEGER NOT NULL, track INTEGER NOT NULL, first INTEGER NOT NULL,
    step INTEGER NOT NULL, count INTEGER NOT NULL, begin_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY(run, segment, track, first));
CREATE INDEX span_block_by_step ON span_block(run, step);
CREATE TABLE pyramid(run INTEGER NOT NULL, segment INTEGER NOT NULL, track INTEGER NOT NULL, level INTEGER NOT NULL,
    ordinal INTEGER NOT NULL, count INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY(run, segment, track, level, ordinal));
CREATE TABLE memory_block(run INTEGER NOT NULL, segment INTEGER NOT NULL, rank INTEGER NOT NULL, ordinal INTEGER NOT NULL,
    count INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY(run, segment, rank, ordinal));
CREATE TABLE edge_block(run INTEGER NOT NULL, segment INTEGER NOT NULL, ordinal INTEGER NOT NULL, count INTEGER NOT NULL,
    data BLOB NOT NULL, PRIMARY KEY(run, segment, ordinal));
CREATE TABLE counter(run INTEGER NOT NULL, counter INTEGER NOT NULL, rank INTEGER NOT NULL, name TEXT NOT NULL,
    unit TEXT NOT NULL, PRIMARY KEY(run, counter)) WITHOUT ROWID;
CREATE TABLE counter_block(run INTEGER NOT NULL, segment INTEGER NOT NULL, counter INTEGER NOT NULL,
    ordinal INTEGER NOT NULL, count INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY(run, segment, counter, ordinal));
CREATE TABLE metric(run INTEGER NOT NULL, metric INTEGER NOT NULL, name TEXT NOT NULL, unit TEXT NOT NULL,
    PRIMARY KEY(run, metric)) WITHOUT ROWID;
CREATE TABLE metric_value(run INTEGER NOT NULL, metric INTEGER NOT NULL, step INTEGER NOT NULL, value REAL,
    PRIMARY KEY(run, metric, step)) WITHOUT ROWID;

CREATE VIEW runs AS SELECT id AS run, name, schedule_name AS schedule, note, created_unix_ms, state, provenance, clock, ranks,
    stages, microbatches, steps, warmup_steps, span_count, begin_ns, end_ns FROM run;
CREATE VIEW steps AS SELECT run, step, min(begin_ns) AS begin_ns, max(end_ns) AS end_ns,
    max(end_ns) - min(begin_ns) AS duration_ns, sum(count) AS spans FROM span_block GROUP BY run, step;
CREATE VIEW metrics AS SELECT v.run AS run, m.name AS name, v.step AS step, v.value AS value, m.unit AS unit
    FROM metric_value AS v JOIN metric AS m ON m.run = v.run AND m.metric = v.metric;
)sql";

constexpr std::string_view version2 = R"sql(
CREATE TABLE memory_base(run INTEGER NOT NULL, segment INTEGER NOT NULL, ordinal INTEGER NOT NULL, count INTEGER NOT NULL,
    data BLOB NOT NULL, PRIMARY KEY(run, segment, ordinal));
)sql";

// User data: notes, bookmarks, queries.
constexpr std::string_view version3 = R"sql(
CREATE TABLE note(run INTEGER NOT NULL, note INTEGER NOT NULL, text TEXT NOT NULL, anchor TEXT NOT NULL, step INTEGER NOT NULL,
    rank INTEGER NOT NULL, last_rank INTEGER NOT NULL, op TEXT NOT NULL, occurrence INTEGER NOT NULL, begin_ns INTEGER NOT NULL,
    end_ns INTEGER NOT NULL, created_unix_ms INTEGER NOT NULL, PRIMARY KEY(run, note)) WITHOUT ROWID;
CREATE TABLE bookmark(run INTEGER NOT NULL, slot INTEGER NOT NULL, step INTEGER NOT NULL, begin_ns INTEGER NOT NULL,
    end_ns INTEGER NOT NULL, rank INTEGER, op TEXT, occurrence INTEGER, PRIMARY KEY(run, slot)) WITHOUT ROWID;
CREATE TABLE saved_query(name TEXT NOT NULL PRIMARY KEY, sql TEXT NOT NULL, about TEXT NOT NULL) WITHOUT ROWID;
CREATE VIEW notes AS SELECT run, note, text, anchor, step, rank, last_rank, op, begin_ns, end_ns, created_unix_ms FROM note;
)sql";

// Bounds of blocks without the pages of their data: the first view of a large run.
constexpr std::string_view version4 = R"sql(
DROP INDEX span_block_by_step;
CREATE INDEX span_block_bounds ON span_block(run, step, segment, track, begin_ns, end_ns, count);
)sql";

// A recording appends a row a step, with all rows of the step's tables in it, until they are folded into the tables.
constexpr std::string_view version5 = R"sql(
CREATE TABLE step_log(id INTEGER PRIMARY KEY, run INTEGER NOT NULL, segment INTEGER NOT NULL, first_step INTEGER NOT NULL, steps INTEGER NOT NULL,
    span_count INTEGER NOT NULL, begin_ns INTEGER, end_ns INTEGER, facts BLOB NOT NULL, data BLOB NOT NULL);
CREATE TABLE table_digest(run INTEGER NOT NULL, name TEXT NOT NULL, rows INTEGER NOT NULL, hash INTEGER NOT NULL, PRIMARY KEY(run, name)) WITHOUT ROWID;
)sql";

// How kernels were launched: labels of one text that differ in it have a number each.
constexpr std::string_view version6 = R"sql(
CREATE TABLE label_shape(run INTEGER NOT NULL, label INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY(run, label)) WITHOUT ROWID;
)sql";

// Steps that are not folded have a digest, and a digest says which digests there are.
constexpr std::string_view version7 = "";

// Names without a schema: where steps are not folded yet, temporary views of these names hold them too (step_log.h).
constexpr std::string_view queryViews = R"sql(
CREATE TEMP VIEW runs AS SELECT id AS run, name, schedule_name AS schedule, note, created_unix_ms, state, provenance, clock, ranks,
    nullif(stages, 0) AS stages, nullif(microbatches, 0) AS microbatches, steps, warmup_steps, span_count, begin_ns, end_ns FROM run;
CREATE TEMP VIEW steps AS SELECT run, step, min(begin_ns) AS begin_ns, max(end_ns) AS end_ns,
    max(end_ns) - min(begin_ns) AS duration_ns, sum(count) AS spans, step + 1 AS step_number FROM span_block WHERE step>=0 GROUP BY run, step;
CREATE TEMP VIEW metrics AS SELECT v.run AS run, m.name AS name, v.step AS step, v.value AS value, m.unit AS unit, v.step + 1 AS step_number
    FROM metric_value AS v JOIN metric AS m ON m.run = v.run AND m.metric = v.metric;
)sql";
constexpr std::string_view notesView = R"sql(
CREATE TEMP VIEW notes AS SELECT run, note, text, anchor, step, rank, last_rank, op, begin_ns, end_ns, created_unix_ms, step + 1 AS step_number
    FROM main.note;
)sql";
constexpr std::string_view noNotesView = R"sql(
CREATE TEMP VIEW notes AS SELECT 0 AS run, 0 AS note, '' AS text, '' AS anchor, 0 AS step, 0 AS rank, 0 AS last_rank, '' AS op, 0 AS begin_ns,
    0 AS end_ns, 0 AS created_unix_ms, 1 AS step_number WHERE 0;
)sql";

constexpr std::array<Migration, 7> steps{{{1, version1},
                                          {2, version2},
                                          {3, version3},
                                          {4, version4},
                                          {5, version5},
                                          {6, version6},
                                          {7, version7, countDigests}}};

constexpr std::array<RunTable, 17> tables{{
    {"run_text", "section, ordinal, key, value"},
    {"track", "track, rank, lane, name"},
    {"label", "label, text"},
    {"segment", "segment, first_span, spans"},
    {"span_block", "segment, track, first, step, count, begin_ns, end_ns, data"},
    {"pyramid", "segment, track, level, ordinal, count, data"},
    {"memory_block", "segment, rank, ordinal, count, data"},
    {"memory_base", "segment, ordinal, count, data"},
    {"edge_block", "segment, ordinal, count, data"},
    {"counter", "counter, rank, name, unit"},
    {"counter_block", "segment, counter, ordinal, count, data"},
    {"metric", "metric, name, unit"},
    {"metric_value", "metric, step, value"},
    {"note", "note, text, anchor, step, rank, last_rank, op, occurrence, begin_ns, end_ns, created_unix_ms"},
    {"bookmark", "slot, step, begin_ns, end_ns, rank, op, occurrence"},
    {"step_log", "segment, first_step, steps, span_count, begin_ns, end_ns, facts, data"},
    {"label_shape", "label, text"},
}};

} // namespace

std::span<const Migration> migrations() { return steps; }

int runFileVersion() { return steps.back().version; }

std::span<const RunTable> runTables() { return tables; }

Result<int> checkRunFile(Database& database)
{
    STAGEWRIGHT_TRY(const auto application, database.integer("PRAGMA application_id"));
    if (application != runFileApplicationId)
        return fail(ErrorCode::Unreadable,
                    fmt::format("file {}: a database of another program (application id {}, run files have {})",
                                database.path(), application, runFileApplicationId),
                    "choose a file written by stagewright");
    STAGEWRIGHT_TRY(const auto version, database.integer("PRAGMA user_version"));
    if (version > runFileVersion())
        return fail(ErrorCode::Unreadable,
                    fmt::format("file {}: format version {}, this program reads up to {}", database.path(), version,
                                runFileVersion()),
                    "open it with a newer stagewright");
    if (version < 1)
        return fail(ErrorCode::Unreadable,
                    fmt::format("file {}: damaged (format version {}, the first is 1)", database.path(), version),
                    "restore it from a copy, or record again");
    return static_cast<int>(version);
}

Result<void> migrate(Database& database, int from, std::span<const Migration> toApply)
{
    for (const Migration& step : toApply) {
        if (step.version <= from) continue;
        STAGEWRIGHT_TRY(auto transaction, Transaction::begin(database));
        if (auto done = database.execute(std::string(step.sql)); !done) return done;
        if (step.then != nullptr)
            if (auto done = step.then(database); !done) return done;
        const std::string marks =
            fmt::format("PRAGMA application_id={}; PRAGMA user_version={}", runFileApplicationId, step.version);
        if (auto done = database.execute(marks); !done) return done;
        if (auto done = transaction.commit(); !done) return done;
    }
    return {};
}

Result<void> runNumbersAreLeft(Database& database)
{
    STAGEWRIGHT_TRY(const auto last, database.integer("SELECT max(seq) FROM main.sqlite_sequence WHERE name='run'"));
    if (last < std::numeric_limits<std::int64_t>::max()) return {};
    return fail(ErrorCode::Unreadable,
                fmt::format("file {}: its last run has the highest number that there is, so no run can be added",
                            database.path()),
                "put its runs into another file: stagewright runs OTHER --merge " + database.path());
}

Result<void> addQueryViews(Database& database, int version)
{
    return database.execute(fmt::format("{}{}", queryViews, version < 3 ? noNotesView : notesView));
}

} // namespace stagewright
