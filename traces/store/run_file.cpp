#include "traces/store/run_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "traces/store/merge.h"
#include "traces/store/new_file.h"
#include "traces/store/note_rows.h"
#include "traces/store/query.h"
#include "traces/store/report_functions.h"
#include "traces/store/report_steps.h"
#include "traces/store/rows.h"
#include "traces/store/run_damage.h"
#include "traces/store/run_digest.h"
#include "traces/store/run_list.h"
#include "traces/store/run_names.h"
#include "traces/store/run_overview.h"
#include "traces/store/run_reader.h"
#include "traces/store/run_store.h"
#include "traces/store/run_stream.h"
#include "traces/store/schema.h"
#include "traces/store/sql_tables.h"
#include "traces/store/step_log.h"
#include "traces/store/table_digests.h"
#include "traces/store/trust.h"

namespace stagewright {

struct RunFile::State {
    std::shared_ptr<RunStore> store;
};

namespace {

constexpr int largePage = 8192; // of files that no recording has grown: blocks are read in few pieces

// `files`: how many times the file's size.
std::int64_t megabytes(const std::string& path, std::int64_t files)
{
    std::error_code unknown;
    const auto bytes = std::filesystem::file_size(path, unknown);
    return unknown ? 1 : static_cast<std::int64_t>(bytes) * files / 1'000'000 + 1;
}

// Compacting writes the steps that are not folded into the tables, and then the whole file once more beside it.
std::string roomToCompact(const std::string& path)
{
    return fmt::format("compacting needs about {} MB of free space; free some, or copy the file to another disk and compact it there", megabytes(path, 4));
}

// Deleting keeps what it changes in a journal beside the file.
std::string roomToDelete(const std::string& path)
{
    return fmt::format("deleting needs at most {} MB of free space; free some, or copy the file to another disk and delete it there", megabytes(path, 1));
}

// Of a full disk: with the room that is needed.
tl::unexpected<Error> needing(Error error, std::string room)
{
    if (error.code == ErrorCode::Failed) error.remedy = std::move(room);
    return tl::unexpected(std::move(error));
}

Result<void> setUp(Database& database)
{
    if (auto done = database.execute(fmt::format("PRAGMA page_size={}", largePage)); !done) return done;
    return migrate(database, 0, migrations());
}

// "interleaved-1f1b v=2" → "interleaved-1f1b": a schedule's name without its parameters.
std::string_view plainName(std::string_view scheduleName)
{
    return scheduleName.substr(0, scheduleName.find(' '));
}

// Of the runs whose writer was killed those with a measured step are interrupted; the others go.
Result<void> settleRuns(Database& database)
{
    std::vector<std::int64_t> unmeasured;
    auto listed = forEachRow(database, // some steps may not be folded
                             "SELECT id FROM main.run WHERE state='recording' AND id > ? AND warmup_steps >= "
                             "max(steps, (SELECT ifnull(max(l.steps), 0) FROM main.step_log AS l WHERE l.run=main.run.id))",
                             std::numeric_limits<std::int64_t>::min(),
                             [&](const Statement& row) -> Result<void> {
                                 unmeasured.push_back(row.integer(0));
                                 return {};
                             });
    if (!listed) return listed;
    auto transaction = Transaction::begin(database);
    if (!transaction) return tl::unexpected(transaction.error());
    for (const std::int64_t id : unmeasured)
        if (auto done = removeRun(database, id); !done) return done;
    if (auto done = database.execute("UPDATE main.run SET state='interrupted' WHERE state='recording'"); !done) return done;
    return transaction->commit();
}

// Runs whose writer was killed: say so in the file, and leave the WAL behind.
Result<void> settle(RunStore& store)
{
    if (store.lock.heldElsewhere()) return {};
    const auto left = store.database->integer("SELECT count(*) FROM run WHERE state='recording'");
    if (!left) return tl::unexpected(left.error());
    const auto logged = runsWithLoggedSteps(*store.database);
    if (!logged) return tl::unexpected(logged.error());
    const bool wal = store.inWal();
    if (*left == 0 && logged->empty() && !wal) return {};
    if (auto held = store.lock.acquire(); !held) return {}; // another writer started in between
    const RecordingLockHold hold(store.lock);
    for (const std::int64_t run : *logged) (void)foldSteps(*store.database, run); // on a full disk they stay: readers know both forms
    if (*left > 0)
        if (auto done = settleRuns(*store.database); !done) return done;
    if (wal) store.leaveWal();
    return {};
}

bool isWalFile(const std::string& path)
{
    std::ifstream in(path, std::ios::binary);
    char header[20] = {};
    return in.read(header, sizeof header) && header[18] == 2;
}

// SQLite opens a database without looking at it.
bool canRead(Database& database)
{
    (void)database.integer("SELECT count(*) FROM sqlite_schema");
    const int code = sqlite3_errcode(database.handle()) & 0xff;
    return code != SQLITE_CANTOPEN && code != SQLITE_READONLY;
}

// For reading: read and write where that is possible, so that a WAL or journal left by a killed program is recovered, but
// with writing turned off.
Result<std::unique_ptr<Database>> openToRead(const std::string& path, std::string& missing)
{
    std::error_code unknown;
    const bool log = std::filesystem::file_size(path + "-wal", unknown) > 0 && !unknown;
    auto database = Database::open(path, SQLITE_OPEN_READWRITE);
    if (database && sqlite3_db_readonly((*database)->handle(), "main") == 0 && canRead(**database)) {
        if (auto done = (*database)->execute("PRAGMA query_only=1"); !done) return tl::unexpected(done.error());
        return database;
    }
    database = Database::open(path, SQLITE_OPEN_READONLY);
    if (!database || canRead(**database) || !isWalFile(path)) return database;
    if (log) missing = fmt::format("its log {}-wal can't be read in a folder that is read-only, so its last steps are missing; copy both files to a folder that you may write to", path);
    return Database::openAlone(path);
}

// A killed recording without the log that it was killed with.
std::string whatIsMissing(RunStore& store, bool wal, bool log)
{
    if (!wal || log || store.lock.heldElsewhere()) return {};
    const auto left = store.database->integer("SELECT count(*) FROM main.run WHERE state='recording'");
    const auto all = store.database->integer("SELECT count(*) FROM main.run");
    if (!left || !all || (*left == 0 && *all > 0)) return {};
    return fmt::format("it was killed while recording and its log {}-wal is not beside it, so its {} may be missing", store.path, *all == 0 ? "runs" : "last steps");
}

// How long opening a file may compute.
Error takesTooLong(const RunStore& store)
{
    return {ErrorCode::Unreadable, fmt::format("file {}: it takes too long to open, so it is damaged or made to do so", store.path), "restore it from a copy"};
}

// The version of a file whose schema is the known one and whose pages hold together. Those of a file that grows are not looked at.
Result<int> trusted(RunStore& store, std::int64_t bytes)
{
    constexpr std::int64_t smallFile = 10'000'000;
    Database& database = *store.database;
    const Deadline deadline(database, secondsFor(bytes));
    const auto check = [&]() -> Result<int> {
        constexpr std::int64_t largestStep = 1'000'000'000; // SQLite's own limit of a row
        if (auto done = limitFor(database, store.mode == OpenMode::Read ? bytes : std::max(bytes, largestStep)); !done) return tl::unexpected(std::move(done.error()));
        auto version = checkRunFile(database);
        if (!version) return version;
        auto ignored = checkSchema(database, *version);
        if (!ignored) return tl::unexpected(std::move(ignored.error()));
        for (const std::string& name : *ignored) store.ignored += (store.ignored.empty() ? "" : ", ") + name;
        if (bytes <= smallFile && !store.lock.heldElsewhere())
            if (auto done = checkPages(database, false); !done) return tl::unexpected(std::move(done.error()));
        return version;
    };
    auto version = check();
    if (!version && deadline.passed()) return tl::unexpected(takesTooLong(store));
    return version;
}

// In memory, unless many steps are not folded.
Result<void> keepTemporaries(RunStore& store)
{
    constexpr std::int64_t many = 16384;
    const auto steps = store.logs ? store.database->integer("SELECT max(id) - min(id) FROM main.step_log") : Result<std::int64_t>(0);
    if (!steps) return tl::unexpected(steps.error());
    return store.database->execute(fmt::format("PRAGMA temp_store={}", *steps > many ? "FILE" : "MEMORY"));
}

// With the first query: of a file that is opened for one read it would be most of the work.
Result<void> prepareQueries(RunStore& store)
{
    if (store.queries) return {};
    if (auto done = registerSqlTables(*store.database); !done) return done;
    if (auto done = registerReportFunctions(*store.database); !done) return done;
    const bool reading = store.mode == OpenMode::Read;
    if (reading)
        if (auto done = store.database->execute("PRAGMA query_only=0"); !done) return done;
    if (auto done = addQueryViews(*store.database, store.version); !done) return done;
    if (reading)
        if (auto done = store.database->execute("PRAGMA query_only=1"); !done) return done;
    store.queries = true;
    return {};
}

// The file that a symbolic link names: its lock and SQLite's log are beside it, whatever name it is opened by.
std::string withoutLinks(const std::string& path)
{
    std::error_code unknown;
    if (!std::filesystem::is_symlink(path, unknown)) return path;
    const auto real = std::filesystem::weakly_canonical(path, unknown);
    return unknown ? path : real.string();
}

} // namespace

Result<std::unique_ptr<RunFile>> RunFile::open(const std::string& name, OpenMode mode, std::stop_token stop)
{
    const std::string path = withoutLinks(name);
    // A device or pipe can't hold a database, and a journal would stay beside it.
    std::error_code unknown;
    const auto kind = std::filesystem::status(path, unknown).type();
    if (kind != std::filesystem::file_type::regular && kind != std::filesystem::file_type::not_found && kind != std::filesystem::file_type::none && kind != std::filesystem::file_type::directory)
        return fail(ErrorCode::Unreadable, "file " + path + ": not a regular file, so it can't hold runs", "choose a file");
    if (mode != OpenMode::Create && kind == std::filesystem::file_type::regular && std::filesystem::file_size(path, unknown) == 0)
        return fail(ErrorCode::Unreadable, "file " + path + ": the file is empty (0 bytes)", "restore it from a copy, or record again");
    if (mode != OpenMode::Read && kind == std::filesystem::file_type::regular && std::filesystem::hard_link_count(path, unknown) > 1 && !unknown)
        return fail(ErrorCode::Unavailable, "file " + path + ": it has another name (a hard link), under which another program could write to it", "copy the file, and write to the copy");
    const int flags = SQLITE_OPEN_READWRITE | (mode == OpenMode::Create ? SQLITE_OPEN_CREATE : 0);
    const bool wal = kind == std::filesystem::file_type::regular && isWalFile(path);
    const bool log = wal && std::filesystem::file_size(path + "-wal", unknown) > 0 && !unknown;
    std::string missing;
    std::optional<NewFile> created; // by us
    if (mode == OpenMode::Create) created.emplace(path);
    auto database = mode == OpenMode::Read ? openToRead(path, missing) : Database::open(path, flags);
    if (!database) return tl::unexpected(database.error());
    auto store = std::make_shared<RunStore>(path, mode, std::move(*database));
    const auto ends = RunStore::endOf(std::move(stop));
    const Watch watch(*store->database, ends);
    store->missing = std::move(missing);
    if (mode == OpenMode::Create) {
        const auto tables = store->database->integer("SELECT count(*) FROM sqlite_schema");
        if (!tables) return tl::unexpected(tables.error());
        const auto application = store->database->integer("PRAGMA application_id");
        if (!application) return tl::unexpected(application.error());
        if (*tables == 0 && *application == 0)
            if (auto done = setUp(*store->database); !done) return tl::unexpected(done.error());
    }
    const std::int64_t bytes = kind == std::filesystem::file_type::regular ? static_cast<std::int64_t>(std::filesystem::file_size(path, unknown)) : 0;
    const auto version = trusted(*store, bytes);
    if (!version) return tl::unexpected(version.error());
    if (ends()) return fail(ErrorCode::Cancelled, "file " + path + ": cancelled");
    if (store->missing.empty()) store->missing = whatIsMissing(*store, wal, log);
    store->version = mode == OpenMode::Read ? *version : runFileVersion();
    store->logs = store->version >= 5;
    if (mode != OpenMode::Read) {
        if (auto done = migrate(*store->database, *version, migrations()); !done) return tl::unexpected(done.error());
        store->database->keepDigests();
        if (auto done = settle(*store); !done) return tl::unexpected(done.error());
        if (auto done = store->database->execute("PRAGMA synchronous=NORMAL; PRAGMA cache_size=-32768; PRAGMA secure_delete=0"); !done)
            return tl::unexpected(done.error());
    }
    if (auto done = keepTemporaries(*store); !done) return tl::unexpected(done.error());
    { // a table that is missing shows now, not in the middle of something
        const Deadline deadline(*store->database, secondsFor(bytes));
        const auto infos = inSnapshot(*store, [&] { return readRunInfos(*store); });
        if (!infos) return tl::unexpected(deadline.passed() ? takesTooLong(*store) : infos.error());
    }
    auto state = std::make_unique<State>();
    state->store = store; // which outlives the watch on its database also where memory runs out below
    if (created) created->keep();
    return std::unique_ptr<RunFile>(new RunFile(std::move(state)));
}

RunFile::RunFile(std::unique_ptr<State> state) : m_state(std::move(state)) {}

RunFile::~RunFile() = default;

const std::shared_ptr<RunStore>& RunFile::store() const
{
    return m_state->store;
}

const std::string& RunFile::path() const
{
    return m_state->store->path;
}

const std::string& RunFile::missing() const
{
    return m_state->store->missing;
}

const std::string& RunFile::ignored() const
{
    return m_state->store->ignored;
}

const std::string& RunFile::keptIn() const
{
    const RunStore& store = *m_state->store;
    return store.savedIn ? *store.savedIn : store.path;
}

Result<std::vector<RunInfo>> RunFile::runs() const
{
    return inSnapshot(*m_state->store, [&] { return readRunInfos(*m_state->store); });
}

Result<void> RunFile::list(const ListSink& sink, const Progress& progress) const
{
    return inSnapshot(
        *m_state->store, [&] { return listRuns(*m_state->store, sink, progress); }, progress.stop);
}

Result<std::int64_t> RunFile::find(const std::string& idOrName) const
{
    auto infos = runs();
    if (!infos) return tl::unexpected(infos.error());
    std::string_view digits = idOrName;
    if (digits.starts_with('#')) digits.remove_prefix(1);
    if (const auto id = wholeOf<std::int64_t>(digits))
        for (const RunInfo& info : *infos)
            if (info.id == *id) return *id;
    using Match = bool (*)(const RunInfo&, const std::string&);
    static constexpr Match matches[] = {
        [](const RunInfo& info, const std::string& text) { return info.name == text || unnumberedName(info.name) == text; },
        [](const RunInfo& info, const std::string& text) { return info.scheduleName == text; },
        [](const RunInfo& info, const std::string& text) { return plainName(info.scheduleName) == text; },
    };
    for (const Match match : matches)
        for (auto info = infos->rbegin(); info != infos->rend(); ++info)
            if (match(*info, idOrName)) return info->id;
    std::string known;
    for (const RunInfo& info : *infos) known += fmt::format("{}{} {}", known.empty() ? "" : ", ", info.id, info.name);
    return fail(ErrorCode::Usage, fmt::format("file {}: no run {}", path(), idOrName),
                known.empty() ? "the file holds no runs" : "the file holds: " + known);
}

Result<Run> RunFile::read(std::int64_t id, const Progress& progress) const
{
    return readRun(*m_state->store, id, {}, progress);
}

Result<Run> RunFile::readSteps(std::int64_t id, int firstStep, const Progress& progress) const
{
    return readRun(*m_state->store, id, {firstStep}, progress);
}

Result<Run> RunFile::readStep(std::int64_t id, int step, const Progress& progress) const
{
    return readRun(*m_state->store, id, {step, step}, progress);
}

Result<Run> RunFile::readForReport(std::int64_t id, int step, const Progress& progress) const
{
    return stagewright::readForReport(*m_state->store, id, step, progress);
}

Result<Run> RunFile::readHeader(std::int64_t id) const
{
    return readRunHeader(*m_state->store, id);
}

Result<Run> RunFile::readRange(std::int64_t id, Nanos begin, Nanos end, const Progress& progress, std::span<const BlockBounds> rows, const Run* header) const
{
    StepRange range;
    range.times = {begin, std::max(begin, end)};
    range.rows = rows;
    range.header = header;
    return readRun(*m_state->store, id, range, progress);
}

Result<std::vector<RunFile::BlockBounds>> RunFile::blocks(std::int64_t id) const
{
    return withAllSteps(*m_state->store, [&] { return readBlockBounds(*m_state->store, id); });
}

Result<RunFile::Content> RunFile::content(std::int64_t id) const
{
    return withAllSteps(*m_state->store, [&] { return readContent(*m_state->store, id); });
}

Result<std::vector<RunFile::StepBounds>> RunFile::steps(std::int64_t id) const
{
    return withAllSteps(*m_state->store, [&] { return readStepBounds(*m_state->store, id); });
}

Result<std::int64_t> RunFile::streamSpans(std::int64_t id, const SpanSink& sink, const Progress& progress) const
{
    return stagewright::streamSpans(*m_state->store, id, sink, progress);
}

Result<std::optional<bool>> RunFile::intact(std::int64_t id) const
{
    Database& database = *m_state->store->database;
    const auto digests = database.integer("SELECT count(*) FROM main.sqlite_schema WHERE name='table_digest'");
    if (!digests) return tl::unexpected(digests.error());
    if (*digests > 0)
        if (auto tables = tablesHold(database, id, m_state->store->lock.heldElsewhere()); !tables || *tables) return tables;
    // of an earlier version, which kept a checksum of some tables: it can show damage, not that there is none
    auto some = digestHolds(database, id);
    if (some && *some == true) return std::optional<bool>();
    return some;
}

Result<RunDamage> RunFile::damage(std::int64_t id, const Progress& progress) const
{
    return damageOf(*m_state->store, id, progress);
}

Result<void> RunFile::checkPages(std::stop_token stop) const
{
    Database& database = *m_state->store->database;
    const Watch watch(database, RunStore::endOf(std::move(stop)));
    if (auto done = stagewright::checkPages(database, true); !done) return done;
    return inSnapshot(*m_state->store, [&] { return checkFileDigests(database); });
}

Result<std::int64_t> RunFile::streamMemory(std::int64_t id, const MemorySink& sink, const Progress& progress) const
{
    return stagewright::streamMemory(*m_state->store, id, sink, progress);
}

Result<RunFile::Overview> RunFile::overview(std::int64_t id, int atLeastBuckets, std::optional<Lane> only) const
{
    return withAllSteps(*m_state->store, [&] { return readOverview(*m_state->store, id, atLeastBuckets, only); });
}

Result<std::int64_t> RunFile::add(const Run& run, const Progress& progress)
{
    RunStore& store = *m_state->store;
    if (auto held = store.mayWrite(); !held) return tl::unexpected(held.error());
    const RecordingLockHold hold(store.lock);
    auto transaction = Transaction::begin(*store.database);
    if (!transaction) return tl::unexpected(transaction.error());
    const RunState state = run.info.state == RunState::Recording ? RunState::Interrupted : run.info.state;
    auto id = RunRows::insertHeader(*store.database, run, state);
    if (!id) return id;
    RunRows rows(*store.database, *id);
    if (auto done = rows.declareMetrics(run.metrics); !done) return tl::unexpected(done.error());
    for (const Metric& metric : run.metrics) {
        std::int64_t step = 0;
        for (const double value : metric.values)
            if (auto done = rows.addMetric(metric.name, metric.unit, step++, value); !done) return tl::unexpected(done.error());
    }
    if (run.timeline)
        if (auto done = rows.addSegment(*run.timeline, progress); !done) return tl::unexpected(done.error());
    if (progress.cancelled()) return fail(ErrorCode::Cancelled, "storing was cancelled");
    if (auto done = transaction->commit(); !done) return tl::unexpected(done.error());
    return id;
}

Result<void> RunFile::rename(std::int64_t id, const std::string& name)
{
    return change(id, "UPDATE main.run SET name=? WHERE id=?", name);
}

Result<void> RunFile::annotate(std::int64_t id, const std::string& note)
{
    return change(id, "UPDATE main.run SET note=? WHERE id=?", note);
}

Result<void> RunFile::change(std::int64_t id, const char* sql, const std::string& text)
{
    return writing([&]() -> Result<void> {
        Database& database = *m_state->store->database;
        if (auto known = readRunInfo(*m_state->store, id); !known) return tl::unexpected(known.error());
        auto statement = database.prepare(sql);
        if (!statement) return tl::unexpected(statement.error());
        statement->bind(text).bind(id);
        return database.run(*statement);
    });
}

Result<void> RunFile::remove(std::int64_t id)
{
    RunStore& store = *m_state->store;
    if (auto held = store.mayWrite(); !held) return held;
    const RecordingLockHold hold(store.lock);
    const auto known = readRunInfo(store, id);
    if (!known) return tl::unexpected(known.error());
    if (known->state == RunState::Recording)
        return fail(ErrorCode::Usage, fmt::format("file {}: run {} is being recorded", path(), id), "wait until it ends");
    auto transaction = Transaction::begin(*store.database);
    if (!transaction) return tl::unexpected(transaction.error());
    auto done = removeRun(*store.database, id);
    if (done) done = transaction->commit();
    if (!done) return needing(std::move(done.error()), roomToDelete(path()));
    return {};
}

Result<void> RunFile::merge(const std::string& otherPath, const Progress& progress)
{
    RunStore& store = *m_state->store;
    if (auto held = store.mayWrite(); !held) return held;
    const RecordingLockHold hold(store.lock);
    return mergeRuns(store, otherPath, progress);
}

Result<void> RunFile::compact()
{
    RunStore& store = *m_state->store;
    if (store.writers > 0)
        return fail(ErrorCode::Usage, "file " + path() + ": a run is being recorded", "compact it after the recording has ended");
    if (auto held = store.mayWrite(); !held) return held;
    const RecordingLockHold hold(store.lock);
    const auto logged = runsWithLoggedSteps(*store.database);
    if (!logged) return tl::unexpected(logged.error());
    if (auto whole = stagewright::checkPages(*store.database, true); !whole) return whole;
    for (const std::int64_t run : *logged)
        if (auto folded = foldSteps(*store.database, run); !folded) return needing(std::move(folded.error()), roomToCompact(path()));
    if (auto dropped = store.unfolded.dropViews(*store.database); !dropped) return dropped;
    if (auto compacted = store.database->execute(fmt::format("PRAGMA page_size={}; VACUUM", largePage)); !compacted) return needing(std::move(compacted.error()), roomToCompact(path()));
    return {};
}

Result<std::vector<Note>> RunFile::notes(std::int64_t id, bool carried) const
{
    return inSnapshot(*m_state->store, [&] { return readNotes(*m_state->store, id, carried); });
}

Result<void> RunFile::writing(const std::function<Result<void>()>& write)
{
    RunStore& store = *m_state->store;
    if (auto held = store.mayWrite(); !held) return held;
    const RecordingLockHold hold(store.lock);
    auto transaction = Transaction::begin(*store.database);
    if (!transaction) return tl::unexpected(transaction.error());
    if (auto done = write(); !done) return done;
    return transaction->commit();
}

Result<void> RunFile::setNotes(std::int64_t id, const std::vector<Note>& notes)
{
    return writing([&]() -> Result<void> {
        if (auto known = readRunInfo(*m_state->store, id); !known) return tl::unexpected(known.error());
        return writeNotes(*m_state->store->database, id, notes);
    });
}

Result<std::vector<Bookmark>> RunFile::bookmarks() const
{
    return readBookmarks(*m_state->store);
}

Result<void> RunFile::setBookmark(const Bookmark& bookmark)
{
    return writing([&] { return writeBookmark(*m_state->store, bookmark); });
}

Result<std::vector<SavedQuery>> RunFile::savedQueries() const
{
    return readSavedQueries(*m_state->store);
}

Result<void> RunFile::saveQuery(const SavedQuery& query)
{
    return writing([&] { return writeSavedQuery(*m_state->store, query); });
}

Result<void> RunFile::removeQuery(const std::string& name)
{
    return writing([&] { return removeSavedQuery(*m_state->store, name); });
}

Result<RunFile::Table> RunFile::query(const std::string& sql, std::size_t maxRows, const Progress& progress) const
{
    if (auto prepared = prepareQueries(*m_state->store); !prepared) return tl::unexpected(std::move(prepared.error()));
    return withAllSteps(
        *m_state->store, [&] { return runQuery(*m_state->store->database, sql, maxRows, progress); }, progress.stop);
}

Result<void> RunFile::limitSize(std::int64_t bytes)
{
    Database& database = *m_state->store->database;
    const auto page = database.integer("PRAGMA page_size");
    if (!page) return tl::unexpected(page.error());
    const std::int64_t pages = bytes <= 0 ? 0xfffffffe : std::max<std::int64_t>(1, bytes / std::max<std::int64_t>(1, *page));
    return database.execute(fmt::format("PRAGMA max_page_count={}", pages));
}

} // namespace stagewright
