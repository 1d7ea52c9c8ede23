// Taking over the runs of another file, and removing one: row by row, no block is decoded.
#include "traces/store/merge.h"

#include <filesystem>

#include <fmt/format.h>

#include "traces/store/add_runs.h"
#include "traces/store/run_store.h"
#include "traces/store/schema.h"
#include "traces/store/table_digests.h"

namespace stagewright {

namespace {

constexpr std::string_view runColumns = "name, schedule_name, note, created_unix_ms, provenance, clock, ranks, stages, "
                                        "microbatches, steps, warmup_steps, span_count, begin_ns, end_ns, time_unit, "
                                        "memory_unit, schedule, realised, costs";

Result<void> copyRun(Database& database, std::int64_t from)
{
    if (auto left = runNumbersAreLeft(database); !left) return left;
    STAGEWRIGHT_TRY(auto header,
                    database.prepare(fmt::format("INSERT INTO main.run({0}, state) SELECT {0}, iif(state='recording', "
                                                 "'interrupted', state) FROM other.run WHERE id=?",
                                                 runColumns)));
    header.bind(from);
    if (auto done = database.run(header); !done) return done;
    const std::int64_t to = database.lastId();
    for (const RunTable& table : runTables()) {
        const auto there =
            database.integer(fmt::format("SELECT count(*) FROM other.sqlite_schema WHERE name='{}'", table.name));
        if (!there) return tl::unexpected(there.error());
        if (*there == 0) continue; // of an older version
        STAGEWRIGHT_TRY(auto rows, database.prepare(fmt::format(
                                       "INSERT INTO main.{0}(run, {1}) SELECT ?, {1} FROM other.{0} WHERE run=?",
                                       table.name, table.columns)));
        rows.bind(to).bind(from);
        if (auto done = database.run(rows); !done) return done;
    }
    return database.digests() ? database.digests()->takeOver(database, from, to) : Result<void>{};
}

Result<void> copyAll(Database& database, const std::vector<RunInfo>& runs, const Progress& progress)
{
    STAGEWRIGHT_TRY(auto transaction, Transaction::begin(database));
    std::int64_t copied = 0;
    for (const RunInfo& run : runs) {
        progress.tell("adding runs", copied++, static_cast<std::int64_t>(runs.size()));
        if (progress.cancelled()) return storingCancelled();
        if (auto done = copyRun(database, run.id); !done) return done;
    }
    STAGEWRIGHT_TRY(const auto queries,
                    database.integer("SELECT count(*) FROM other.sqlite_schema WHERE name='saved_query'"));
    if (queries > 0)
        if (auto done = database.execute(
                "INSERT OR IGNORE INTO main.saved_query SELECT name, sql, about FROM other.saved_query");
            !done)
            return done;
    // one bookmark a number: those that were here before stay
    if (auto done = database.execute("DELETE FROM main.bookmark WHERE EXISTS(SELECT 1 FROM main.bookmark AS b WHERE "
                                     "b.slot=bookmark.slot AND b.run<bookmark.run)");
        !done)
        return done;
    return transaction.commit();
}

// Only to be read: else SQLite would begin a change of it, too, and make a journal of both. Alone where what is beside
// it is not its own.
Result<void> attachOther(Database& database, const std::string& path)
{
    Result<void> done;
    for (const char* how : {"mode=ro", "immutable=1"}) {
        STAGEWRIGHT_TRY(auto attach, database.prepare("ATTACH ? AS other"));
        const std::string name = Database::uriOf(path, how);
        attach.bind(std::string_view(name));
        done = database.run(attach);
        if (done || (sqlite3_errcode(database.handle()) & 0xff) != SQLITE_CANTOPEN) break;
    }
    return done;
}

} // namespace

Result<void> mergeRuns(RunStore& store, const std::string& otherPath, const Progress& progress)
{
    std::error_code problem;
    if (std::filesystem::equivalent(store.path, otherPath, problem))
        return fail(ErrorCode::Usage, "merge " + otherPath + ": can't be merged into itself", "choose another file");
    std::vector<RunInfo> runs;
    { // checked like any file that is opened
        STAGEWRIGHT_TRY(auto other, RunFile::open(otherPath, OpenMode::Read, progress.stop));
        if (auto whole = other->checkPages(progress.stop); !whole) return whole;
        STAGEWRIGHT_TRY(runs, other->runs());
    }
    for (const RunInfo& run : runs)
        if (run.state == RunState::Recording)
            return fail(ErrorCode::Unavailable, fmt::format("file {}: run {} is being recorded", otherPath, run.id),
                        "merge it after the recording has ended");
    Database& database = *store.database;
    if (auto attached = attachOther(database, otherPath); !attached)
        return tl::unexpected(std::move(attached.error()).with("merge " + otherPath));
    auto copied = [&] {
        const Watch watch(database, [&] { return progress.cancelled(); });
        return copyAll(database, runs, progress);
    }();
    (void)database.execute("DETACH other");
    if (copied) // its own steps of a killed recording; where the disk is full they stay as they are
        if (const auto logged = runsWithLoggedSteps(database); logged)
            for (const std::int64_t run : *logged) (void)foldSteps(database, run, progress);
    if (!copied && progress.cancelled()) return fail(ErrorCode::Cancelled, "storing was cancelled");
    if (!copied) return tl::unexpected(std::move(copied.error()).with("merge " + otherPath));
    return {};
}

Result<void> removeRun(Database& database, std::int64_t id)
{
    for (const RunTable& table : runTables()) {
        if (table.name == "step_log") { // emptied as a whole where it can be: that needs no room on a full disk
            const auto others =
                database.integer(fmt::format("SELECT EXISTS(SELECT 1 FROM main.step_log WHERE run<>{})", id));
            if (!others) return tl::unexpected(others.error());
            if (*others == 0) {
                if (auto done = database.execute("DELETE FROM main.step_log"); !done) return done;
                continue;
            }
        }
        STAGEWRIGHT_TRY(auto rows, database.prepare(fmt::format("DELETE FROM main.{} WHERE run=?", table.name)));
        rows.bind(id);
        if (auto done = database.run(rows); !done) return done;
    }
    STAGEWRIGHT_TRY(auto header, database.prepare("DELETE FROM main.run WHERE id=?"));
    header.bind(id);
    return database.run(header);
}

} // namespace stagewright
