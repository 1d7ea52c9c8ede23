#include "traces/store/run_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>

#include <sys/stat.h>

#include <fmt/format.h>

#include "schedules/base/step_number.h"
#include "schedules/base/text.h"
#include "traces/store/rows.h"
#include "traces/store/run_digest.h"
#include "traces/store/run_names.h"
#include "traces/store/run_store.h"
#include "traces/store/schema.h"
#include "traces/store/sql_tables.h"
#include "traces/store/step_log.h"

namespace stagewright {

struct RunFile::State {
    std::shared_ptr<RunStore> store;
};

struct RunWriter::State {
    std::shared_ptr<RunStore> store;
    std::unique_ptr<Database> staged; // in memory: the rows of the step at hand
    RunRows rows;
    StepRows step;
    std::int64_t steps = 0;
    bool done = false;
};

namespace {

constexpr int largePage = 8192; // of files that no recording has grown: blocks are read in few pieces

// Compacting writes the steps that are not folded into the tables, and then the whole file once more beside it.
std::string needsRoom(const std::string& path)
{
    std::error_code unknown;
    const auto bytes = std::filesystem::file_size(path, unknown);
    return fmt::format("compacting needs about {} MB of free space; free some, or copy the file to another disk and compact it there", unknown ? 1 : bytes * 4 / 1'000'000 + 1);
}

// "x.stagewright" → "x.saved.stagewright", or with a number.
std::string freeNameBeside(const std::string& path)
{
    const std::filesystem::path whole(path);
    for (int number = 1;; ++number) {
        const auto name = whole.parent_path() / fmt::format("{}.saved{}{}", whole.stem().string(), number > 1 ? fmt::format("-{}", number) : "", whole.extension().string());
        std::error_code unknown;
        if (!std::filesystem::exists(name, unknown)) return name.string();
    }
}

// A database in memory with the run's row, which takes the rows of one step after the other.
Result<std::unique_ptr<Database>> stagingFor(const Run& run, std::int64_t id)
{
    auto opened = Database::open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    if (!opened) return opened;
    if (auto done = migrate(**opened, 0, migrations()); !done) return tl::unexpected(std::move(done.error()));
    const auto row = RunRows::insertHeader(**opened, run, RunState::Recording);
    if (!row) return tl::unexpected(row.error());
    if (auto done = (*opened)->execute(fmt::format("DELETE FROM main.run_text; UPDATE main.run SET id={} WHERE id={}", id, *row)); !done) return tl::unexpected(std::move(done.error()));
    return opened;
}

// What only a step shows: the run's row has it from the first one on.
Result<void> setUnits(Database& database, Database& staged, std::int64_t run)
{
    auto from = bound(staged, "SELECT provenance, clock, ranks, time_unit, memory_unit, realised FROM main.run WHERE id=?", [&](Statement& s) { s.bind(run); });
    if (!from) return tl::unexpected(from.error());
    const auto row = staged.step(*from);
    if (!row) return tl::unexpected(row.error());
    auto to = database.prepare("UPDATE main.run SET provenance=?, clock=?, ranks=?, time_unit=?, memory_unit=?, realised=? WHERE id=?");
    if (!to) return tl::unexpected(to.error());
    for (int column = 0; column < 6; ++column) sqlite3_bind_value(to->handle(), column + 1, sqlite3_column_value(from->handle(), column));
    sqlite3_bind_int64(to->handle(), 7, run);
    return database.run(*to);
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

// Small pages while a file is small: a step of a small model writes a page of the log, one of the table and little more. A file that is in use or
// already large keeps its own.
void makePagesSmall(Database& database)
{
    constexpr std::int64_t smallPage = 1024, smallFile = std::int64_t{1} << 20;
    const auto size = database.integer("PRAGMA page_size"), pages = database.integer("PRAGMA page_count");
    if (size && pages && *size > smallPage && *size * *pages <= smallFile) (void)database.execute(fmt::format("PRAGMA page_size={}; VACUUM", smallPage));
}

// The file has room for its pages, also those that are in the log of SQLite only: what is committed can be put into it on a full disk.
Result<void> makeRoom(Database& database, std::int64_t pageSize)
{
    auto pages = database.cached("PRAGMA page_count");
    if (!pages) return tl::unexpected(pages.error());
    const auto row = database.step(**pages);
    if (!row) return tl::unexpected(row.error());
    sqlite3_int64 bytes = (*pages)->integer(0) * pageSize;
    (*pages)->reset();
    const int code = sqlite3_file_control(database.handle(), "main", SQLITE_FCNTL_SIZE_HINT, &bytes);
    if (code != SQLITE_OK && code != SQLITE_NOTFOUND) return fail(ErrorCode::Failed, "file " + database.path() + ": the disk is full", "free some space");
    return {};
}

void growBy(Database& database, int bytes)
{
    (void)sqlite3_file_control(database.handle(), "main", SQLITE_FCNTL_CHUNK_SIZE, &bytes);
}

bool inWal(Database& database)
{
    auto statement = database.prepare("PRAGMA journal_mode");
    if (!statement) return false;
    const auto row = database.step(*statement);
    return row && *row && statement->text(0) == "wal";
}

// Of the runs whose writer was killed those with a measured step are interrupted; the others go.
Result<void> settleRuns(Database& database)
{
    std::vector<std::int64_t> unmeasured;
    auto listed = forEachRow(database, "SELECT id FROM main.run WHERE state='recording' AND steps <= warmup_steps AND id > ?", std::numeric_limits<std::int64_t>::min(),
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
    const bool wal = inWal(*store.database);
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
    if (!left || *left == 0) return {};
    return fmt::format("it was killed while recording and its log {}-wal is not beside it, so its last steps may be missing", store.path);
}

// In memory, unless many steps are not folded.
Result<void> keepTemporaries(RunStore& store)
{
    constexpr std::int64_t many = 16384;
    const auto steps = store.logs ? store.database->integer("SELECT max(id) - min(id) FROM main.step_log") : Result<std::int64_t>(0);
    if (!steps) return tl::unexpected(steps.error());
    return store.database->execute(fmt::format("PRAGMA temp_store={}", *steps > many ? "FILE" : "MEMORY"));
}

Result<void> withQueryViews(RunStore& store, int version)
{
    const bool reading = store.mode == OpenMode::Read;
    if (reading)
        if (auto done = store.database->execute("PRAGMA query_only=0"); !done) return done;
    if (auto done = addQueryViews(*store.database, version); !done) return done;
    return reading ? store.database->execute("PRAGMA query_only=1") : Result<void>();
}

} // namespace

Result<void> RunStore::mayWrite()
{
    if (mode == OpenMode::Read)
        return fail(ErrorCode::Usage, "file " + path + ": opened for reading only", "open it for writing");
    return lock.acquire();
}

void RunStore::leaveWal()
{
    (void)database->execute("PRAGMA wal_checkpoint(TRUNCATE)");
    sqlite3_busy_timeout(database->handle(), 0);
    (void)database->execute("PRAGMA journal_mode=DELETE");
    sqlite3_busy_timeout(database->handle(), 10000);
}

Result<void> RunStore::beginRecording()
{
    if (auto held = mayWrite(); !held) return held;
    // WAL: others read complete steps while this one appends. Refused where a reader is at it: then a journal does.
    if (writers == 0) {
        makePagesSmall(*database);
        growBy(*database, 1 << 16);
        (void)database->execute("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=256; PRAGMA journal_size_limit=4194304");
        const auto size = database->integer("PRAGMA page_size");
        pageSize = size ? *size : 0;
        struct stat opened {};
        if (::stat(path.c_str(), &opened) == 0) {
            device = opened.st_dev;
            inode = opened.st_ino;
        }
    }
    ++writers;
    return {};
}

void RunStore::endRecording()
{
    if (--writers == 0 && !savedIn) {
        growBy(*database, 0);
        leaveWal();
    }
    lock.release();
}

RunStore::~RunStore()
{
    if (mode != OpenMode::Read || !database) return;
    // a reader does not put away the log of a killed recording: whether it is there shows whether steps are missing
    const auto left = database->integer("SELECT count(*) FROM main.run WHERE state='recording'");
    if (left && *left > 0) sqlite3_db_config(database->handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

Result<void> RunStore::inPlace()
{
    struct stat present {};
    const bool there = ::stat(path.c_str(), &present) == 0;
    const bool same = there && present.st_dev == device && present.st_ino == inode;
    const bool guarded = lock.restore();
    if (!savedIn && same && guarded) return {};
    if (!savedIn) {
        savedIn = freeNameBeside(path);
        auto copied = database->prepare("VACUUM INTO ?");
        if (copied) copied->bind(std::string_view(*savedIn));
        const auto saved = copied ? database->run(*copied) : Result<void>(tl::unexpected(copied.error()));
        if (!saved || !RunFile::open(*savedIn, OpenMode::Write)) savedIn = "";
        // the log and its index are at the path, too, and would be taken for those of the file that is there now
        if (guarded) {
            (void)database->execute("UPDATE main.run SET state='interrupted' WHERE state='recording'; PRAGMA wal_checkpoint(TRUNCATE)");
            leaveWal();
        }
        sqlite3_db_config(database->handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    }
    const std::string_view what = !there ? "it was removed or renamed" : !same ? "another file was put in its place"
                                                                               : "its lock was removed and another program writes to it";
    if (savedIn->empty()) return fail(ErrorCode::Failed, fmt::format("file {}: {} while recording, and its runs could not be saved beside it", path, what), "record again");
    return fail(ErrorCode::Failed, fmt::format("file {}: {} while recording; its runs are saved in {}", path, what, *savedIn));
}

Result<Snapshot> Snapshot::of(RunStore& store)
{
    if (auto begun = store.database->execute("SAVEPOINT reading"); !begun) return tl::unexpected(begun.error());
    Snapshot snapshot(*store.database);
    if (store.logs)
        if (auto done = store.unfolded.catchUp(*store.database, store.mode == OpenMode::Read); !done) return tl::unexpected(std::move(done.error()));
    return Result<Snapshot>(std::move(snapshot));
}

Snapshot::~Snapshot()
{
    if (m_database) (void)m_database->execute("RELEASE reading");
}

Result<std::unique_ptr<RunFile>> RunFile::open(const std::string& path, OpenMode mode)
{
    // A device or pipe can't hold a database, and a journal would stay beside it.
    std::error_code unknown;
    const auto kind = std::filesystem::status(path, unknown).type();
    if (kind != std::filesystem::file_type::regular && kind != std::filesystem::file_type::not_found && kind != std::filesystem::file_type::none && kind != std::filesystem::file_type::directory)
        return fail(ErrorCode::Unreadable, "file " + path + ": not a regular file, so it can't hold runs", "choose a file");
    if (mode != OpenMode::Create && kind == std::filesystem::file_type::regular && std::filesystem::file_size(path, unknown) == 0)
        return fail(ErrorCode::Unreadable, "file " + path + ": the file is empty (0 bytes)", "restore it from a copy, or record again");
    const int flags = SQLITE_OPEN_READWRITE | (mode == OpenMode::Create ? SQLITE_OPEN_CREATE : 0);
    const bool wal = kind == std::filesystem::file_type::regular && isWalFile(path);
    const bool log = wal && std::filesystem::file_size(path + "-wal", unknown) > 0 && !unknown;
    std::string missing;
    auto database = mode == OpenMode::Read ? openToRead(path, missing) : Database::open(path, flags);
    if (!database) return tl::unexpected(database.error());
    auto store = std::make_shared<RunStore>(path, mode, std::move(*database));
    store->missing = std::move(missing);
    if (mode == OpenMode::Create) {
        const auto tables = store->database->integer("SELECT count(*) FROM sqlite_schema");
        if (!tables) return tl::unexpected(tables.error());
        const auto application = store->database->integer("PRAGMA application_id");
        if (!application) return tl::unexpected(application.error());
        if (*tables == 0 && *application == 0)
            if (auto done = setUp(*store->database); !done) return tl::unexpected(done.error());
    }
    const auto version = checkRunFile(*store->database);
    if (!version) return tl::unexpected(version.error());
    if (store->missing.empty()) store->missing = whatIsMissing(*store, wal, log);
    store->logs = mode != OpenMode::Read || *version >= 5;
    if (mode != OpenMode::Read) {
        if (auto done = migrate(*store->database, *version, migrations()); !done) return tl::unexpected(done.error());
        if (auto done = settle(*store); !done) return tl::unexpected(done.error());
        if (auto done = store->database->execute("PRAGMA synchronous=NORMAL; PRAGMA cache_size=-32768; PRAGMA secure_delete=0"); !done)
            return tl::unexpected(done.error());
    }
    if (auto done = keepTemporaries(*store); !done) return tl::unexpected(done.error());
    // a table that is missing shows now, not in the middle of something
    if (auto infos = inSnapshot(*store, [&] { return readRunInfos(*store); }); !infos) return tl::unexpected(infos.error());
    if (auto done = registerSqlTables(*store->database); !done) return tl::unexpected(done.error());
    if (auto done = registerReportFunctions(*store->database); !done) return tl::unexpected(done.error());
    if (auto done = withQueryViews(*store, mode == OpenMode::Read ? *version : runFileVersion()); !done) return tl::unexpected(done.error());
    auto state = std::make_unique<State>();
    state->store = std::move(store);
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

const std::string& RunFile::keptIn() const
{
    const RunStore& store = *m_state->store;
    return store.savedIn ? *store.savedIn : store.path;
}

Result<std::vector<RunInfo>> RunFile::runs() const
{
    return inSnapshot(*m_state->store, [&] { return readRunInfos(*m_state->store); });
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
    return digestHolds(*m_state->store->database, id);
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
    if (auto done = storeDigest(*store.database, *id); !done) return tl::unexpected(done.error());
    if (progress.cancelled()) return fail(ErrorCode::Cancelled, "storing was cancelled");
    if (auto done = transaction->commit(); !done) return tl::unexpected(done.error());
    return id;
}

Result<std::unique_ptr<RunWriter>> RunFile::begin(const Run& header)
{
    const auto& store = m_state->store;
    if (auto held = store->beginRecording(); !held) return tl::unexpected(held.error());
    const auto start = [&]() -> Result<std::unique_ptr<RunWriter>> {
        auto transaction = Transaction::begin(*store->database);
        if (!transaction) return tl::unexpected(transaction.error());
        Run own = header;
        own.timeline = nullptr;
        auto there = inSnapshot(*store, [&] { return readRunInfos(*store); });
        if (!there) return tl::unexpected(there.error());
        own.info.name = freeRunName(*there, own.info.name.empty() ? own.info.scheduleName : own.info.name);
        const auto id = RunRows::insertHeader(*store->database, own, RunState::Recording);
        if (!id) return tl::unexpected(id.error());
        auto staged = stagingFor(own, *id);
        if (!staged) return tl::unexpected(std::move(staged.error()));
        RunRows rows(**staged, *id);
        if (auto done = rows.declareMetrics(header.metrics); !done) return tl::unexpected(done.error());
        StepRows step;
        if (auto done = takeStepRows(**staged, *id, step); !done) return tl::unexpected(done.error());
        if (auto done = addStepRows(*store->database, "main.", *id, step.facts.bytes()); !done) return tl::unexpected(done.error());
        step.facts.clear();
        if (auto done = transaction->commit(); !done) return tl::unexpected(done.error());
        rows.accept();
        auto state = std::make_unique<RunWriter::State>(RunWriter::State{store, std::move(*staged), std::move(rows), std::move(step), 0, false});
        return std::unique_ptr<RunWriter>(new RunWriter(std::move(state)));
    };
    auto writer = start();
    if (!writer) store->endRecording();
    (void)store->database->execute("PRAGMA wal_checkpoint(PASSIVE)"); // the file alone says that it is being recorded
    return writer;
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
    RunStore& store = *m_state->store;
    if (auto held = store.mayWrite(); !held) return held;
    const RecordingLockHold hold(store.lock);
    if (auto known = readRunInfo(store, id); !known) return tl::unexpected(known.error());
    auto statement = store.database->prepare(sql);
    if (!statement) return tl::unexpected(statement.error());
    statement->bind(text).bind(id);
    return store.database->run(*statement);
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
    if (auto done = removeRun(*store.database, id); !done) return done;
    return transaction->commit();
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
    for (const std::int64_t run : *logged)
        if (auto folded = foldSteps(*store.database, run); !folded) {
            if (folded.error().code == ErrorCode::Failed) folded.error().remedy = needsRoom(path());
            return tl::unexpected(std::move(folded.error()));
        }
    auto compacted = store.database->execute(fmt::format("PRAGMA page_size={}; VACUUM", largePage));
    if (!compacted && compacted.error().code == ErrorCode::Failed) compacted.error().remedy = needsRoom(path());
    return compacted;
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
    return write();
}

Result<void> RunFile::setNotes(std::int64_t id, const std::vector<Note>& notes)
{
    return writing([&]() -> Result<void> {
        if (auto known = readRunInfo(*m_state->store, id); !known) return tl::unexpected(known.error());
        auto transaction = Transaction::begin(*m_state->store->database);
        if (!transaction) return tl::unexpected(transaction.error());
        if (auto done = writeNotes(*m_state->store->database, id, notes); !done) return done;
        return transaction->commit();
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
    return withAllSteps(*m_state->store, [&] { return runQuery(*m_state->store->database, sql, maxRows, progress); });
}

Result<void> RunFile::limitSize(std::int64_t bytes)
{
    Database& database = *m_state->store->database;
    const auto page = database.integer("PRAGMA page_size");
    if (!page) return tl::unexpected(page.error());
    const std::int64_t pages = bytes <= 0 ? 0xfffffffe : std::max<std::int64_t>(1, bytes / std::max<std::int64_t>(1, *page));
    return database.execute(fmt::format("PRAGMA max_page_count={}", pages));
}

RunWriter::RunWriter(std::unique_ptr<State> state) : m_state(std::move(state)) {}

RunWriter::~RunWriter()
{
    if (!m_state->done) (void)finish(RunState::Interrupted);
}

std::int64_t RunWriter::id() const
{
    return m_state->rows.run();
}

Result<void> RunWriter::append(const Timeline& step, const std::vector<std::pair<std::string, double>>& metrics)
{
    State& state = *m_state;
    if (state.done) return fail(ErrorCode::Usage, fmt::format("run {} is finished", id()), "start another run");
    Database& database = *state.store->database;
    if (auto there = state.store->inPlace(); !there) return there;
    const auto write = [&]() -> Result<void> {
        auto staged = Transaction::begin(*state.staged);
        if (!staged) return tl::unexpected(staged.error());
        if (auto done = state.rows.addSegment(step); !done) return done;
        for (const auto& [name, value] : metrics)
            if (auto done = state.rows.addMetric(name, {}, state.steps, value); !done) return done;
        auto totals = totalsOf(*state.staged, id());
        if (!totals) return tl::unexpected(totals.error());
        totals->firstStep = std::max<std::int64_t>(0, totals->steps - 1);
        for (const Span& span : step.spans()) totals->firstStep = std::min<std::int64_t>(totals->firstStep, span.step);
        state.step.facts.clear();
        state.step.blocks.clear();
        if (auto done = takeStepRows(*state.staged, id(), state.step); !done) return done;
        auto transaction = Transaction::begin(database);
        if (!transaction) return tl::unexpected(transaction.error());
        if (state.steps == 0)
            if (auto done = setUnits(database, *state.staged, id()); !done) return done;
        if (auto done = logStep(database, id(), *totals, state.step); !done) return done;
        if (auto done = makeRoom(database, state.store->pageSize); !done) return done;
        if (auto done = transaction->commit(); !done) return done;
        return staged->commit();
    };
    auto done = write();
    if (!done) {
        state.rows.rollBack();
        return tl::unexpected(std::move(done.error()).with(fmt::format("run {}, step {}", id(), stepNumber(state.steps))));
    }
    state.rows.accept();
    ++state.steps;
    return done;
}

Result<void> RunWriter::finish(RunState end, const std::optional<CostModel>& costs, const Progress& progress)
{
    State& state = *m_state;
    if (state.done) return {};
    state.done = true;
    Database& database = *state.store->database;
    if (auto there = state.store->inPlace(); !there) {
        state.store->endRecording();
        return there;
    }
    const auto close = [&]() -> Result<void> {
        auto transaction = Transaction::begin(database);
        if (!transaction) return tl::unexpected(transaction.error());
        RunRows kept(database, id());
        const auto totals = totalsOf(*state.staged, id());
        if (!totals) return tl::unexpected(totals.error());
        if (auto done = setTotals(database, id(), *totals); !done) return done;
        if (costs)
            if (auto done = kept.setCosts(*costs); !done) return done;
        if (auto done = kept.setState(end == RunState::Recording ? RunState::Interrupted : end); !done) return done;
        return transaction->commit();
    };
    auto closed = close();
    if (!closed) { // what SQLite's log holds of a full disk is free after this
        state.store->leaveWal();
        closed = close();
    }
    const auto folded = foldSteps(database, id(), progress);
    if (folded && *folded) { // else readers do without
        (void)summarisePyramids(*state.store, id());
        if (closed) closed = storeDigest(database, id());
    }
    state.store->endRecording();
    return closed;
}

} // namespace stagewright
