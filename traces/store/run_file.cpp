#include "traces/store/run_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "schedules/base/open_files.h"
#include "schedules/base/text.h"
#include "traces/store/guarded_files.h"
#include "traces/store/merge.h"
#include "traces/store/note_rows.h"
#include "traces/store/query.h"
#include "traces/store/report_functions.h"
#include "traces/store/report_steps.h"
#include "traces/store/rows.h"
#include "traces/store/run_damage.h"
#include "traces/store/run_digest.h"
#include "traces/store/run_list.h"
#include "traces/store/run_names.h"
#include "traces/store/run_opening.h"
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

constexpr int largePage = 8192; // of a compacted file: blocks are read in few pieces

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
    return fmt::format(
        "compacting needs about {} MB of free space; free some, or copy the file to another disk and compact it there",
        megabytes(path, 4));
}

// Deleting keeps what it changes in a journal beside the file.
std::string roomToDelete(const std::string& path)
{
    return fmt::format(
        "deleting needs at most {} MB of free space; free some, or copy the file to another disk and delete it there",
        megabytes(path, 1));
}

// The error of a full disk with the room that is needed.
tl::unexpected<Error> needing(Error error, std::string room)
{
    if (error.code == ErrorCode::Failed && error.remedy != noRoomLeft(EFBIG, {})->remedy)
        error.remedy = std::move(room);
    return tl::unexpected(std::move(error));
}

// "interleaved-1f1b v=2" → "interleaved-1f1b": a schedule's name without its parameters.
std::string_view plainName(std::string_view scheduleName) { return scheduleName.substr(0, scheduleName.find(' ')); }

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

} // namespace

Result<std::unique_ptr<RunFile>> RunFile::open(const std::string& path, OpenMode mode, std::stop_token stop)
{
    STAGEWRIGHT_TRY(auto store, openRunStore(path, mode, std::move(stop)));
    auto state = std::make_unique<State>();
    state->store = std::move(store);
    return std::unique_ptr<RunFile>(new RunFile(std::move(state)));
}

RunFile::RunFile(std::unique_ptr<State> state) : m_state(std::move(state)) {}

RunFile::~RunFile() = default;

const std::shared_ptr<RunStore>& RunFile::store() const { return m_state->store; }

const std::string& RunFile::path() const { return m_state->store->path; }

const std::string& RunFile::missing() const { return m_state->store->missing; }

const std::string& RunFile::ignored() const { return m_state->store->ignored; }

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
    std::string_view digits = idOrName;
    if (digits.starts_with('#')) digits.remove_prefix(1);
    const auto number = wholeOf<std::int64_t>(digits);
    using Match = bool (*)(const RunInfo&, const std::string&);
    static constexpr Match matches[] = {
        [](const RunInfo& info, const std::string& text) {
            return info.name == text || unnumberedName(info.name) == text;
        },
        [](const RunInfo& info, const std::string& text) { return info.scheduleName == text; },
        [](const RunInfo& info, const std::string& text) { return plainName(info.scheduleName) == text; },
    };
    constexpr std::size_t mostNamed = 20;
    std::optional<std::int64_t> numbered;
    std::array<std::optional<std::int64_t>, std::size(matches)> newest; // by match
    std::string known;
    std::size_t all = 0;
    STAGEWRIGHT_CHECK(inSnapshot(*m_state->store, [&] {
        return eachRunInfo(*m_state->store,
                           [&](const RunInfo& info) -> Result<void> { // none is kept: there may be millions
                               if (info.id == number) numbered = info.id;
                               for (std::size_t i = 0; i < newest.size(); ++i)
                                   if (matches[i](info, idOrName)) newest[i] = info.id;
                               if (++all <= mostNamed)
                                   known += fmt::format("{}{} {}", known.empty() ? "" : ", ", info.id, info.name);
                               return {};
                           });
    }));
    if (numbered) return *numbered;
    for (const auto& found : newest)
        if (found) return *found;
    if (all > mostNamed) known += fmt::format(" and {} more", all - mostNamed);
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

Result<Run> RunFile::readHeader(std::int64_t id) const { return readRunHeader(*m_state->store, id); }

Result<Run> RunFile::readRange(std::int64_t id, Nanos begin, Nanos end, const Progress& progress,
                               std::span<const BlockBounds> rows, const Run* header) const
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
    STAGEWRIGHT_TRY(const auto digests,
                    database.integer("SELECT count(*) FROM main.sqlite_schema WHERE name='table_digest'"));
    if (digests > 0)
        if (auto tables = tablesHold(database, id, m_state->store->lock.heldElsewhere()); !tables || *tables)
            return tables;
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
    STAGEWRIGHT_CHECK(store.mayWrite());
    const RecordingLockHold hold(store.lock);
    STAGEWRIGHT_TRY(auto transaction, Transaction::begin(*store.database));
    const RunState state = run.info.state == RunState::Recording ? RunState::Interrupted : run.info.state;
    auto id = RunRows::insertHeader(*store.database, run, state);
    if (!id) return id;
    RunRows rows(*store.database, *id);
    STAGEWRIGHT_CHECK(rows.declareMetrics(run.metrics));
    for (const Metric& metric : run.metrics) {
        std::int64_t step = 0;
        for (const double value : metric.values)
            STAGEWRIGHT_CHECK(rows.addMetric(metric.name, metric.unit, step++, value));
    }
    if (run.timeline) STAGEWRIGHT_CHECK(rows.addSegment(*run.timeline, progress));
    if (progress.cancelled()) return fail(ErrorCode::Cancelled, "storing was cancelled");
    STAGEWRIGHT_CHECK(transaction.commit());
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
        STAGEWRIGHT_CHECK(readRunInfo(*m_state->store, id));
        STAGEWRIGHT_TRY(auto statement, database.prepare(sql));
        statement.bind(text).bind(id);
        return database.run(statement);
    });
}

Result<void> RunFile::remove(std::int64_t id, std::stop_token stop)
{
    RunStore& store = *m_state->store;
    const auto ends = RunStore::endOf(std::move(stop));
    const Watch watch(*store.database, ends);
    if (auto held = store.mayWrite(); !held) return held;
    const RecordingLockHold hold(store.lock);
    STAGEWRIGHT_TRY(const auto known, readRunInfo(store, id));
    if (known.state == RunState::Recording)
        return fail(ErrorCode::Usage, fmt::format("file {}: run {} is being recorded", path(), id),
                    "wait until it ends");
    STAGEWRIGHT_TRY(auto transaction, Transaction::begin(*store.database));
    auto done = removeRun(*store.database, id);
    if (done && ends()) return fail(ErrorCode::Cancelled, "deleting was cancelled");
    if (done) done = transaction.commit();
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

Result<void> RunFile::compact(std::stop_token stop)
{
    RunStore& store = *m_state->store;
    const auto ends = RunStore::endOf(std::move(stop));
    const Watch watch(*store.database, ends);
    if (store.writers > 0)
        return fail(ErrorCode::Usage, "file " + path() + ": a run is being recorded",
                    "compact it after the recording has ended");
    if (auto held = store.mayWrite(); !held) return held;
    const RecordingLockHold hold(store.lock);
    STAGEWRIGHT_TRY(const auto logged, runsWithLoggedSteps(*store.database));
    if (auto whole = stagewright::checkPages(*store.database, true); !whole) return whole;
    for (const std::int64_t run : logged)
        if (auto folded = foldSteps(*store.database, run); !folded)
            return needing(std::move(folded.error()), roomToCompact(path()));
    if (ends()) return fail(ErrorCode::Cancelled, "compacting was cancelled");
    if (auto dropped = store.unfolded.dropViews(*store.database); !dropped) return dropped;
    const UnlimitedTemporaryFiles copy;
    if (auto compacted = store.database->execute(fmt::format("PRAGMA page_size={}; VACUUM", largePage)); !compacted)
        return needing(std::move(compacted.error()), roomToCompact(path()));
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
    STAGEWRIGHT_TRY(auto transaction, Transaction::begin(*store.database));
    if (auto done = write(); !done) return done;
    return transaction.commit();
}

Result<void> RunFile::setNotes(std::int64_t id, const std::vector<Note>& notes)
{
    return writing([&]() -> Result<void> {
        STAGEWRIGHT_CHECK(readRunInfo(*m_state->store, id));
        return writeNotes(*m_state->store->database, id, notes);
    });
}

Result<std::vector<Bookmark>> RunFile::bookmarks() const { return readBookmarks(*m_state->store); }

Result<void> RunFile::setBookmark(const Bookmark& bookmark)
{
    return writing([&] { return writeBookmark(*m_state->store, bookmark); });
}

Result<std::vector<SavedQuery>> RunFile::savedQueries() const { return readSavedQueries(*m_state->store); }

Result<void> RunFile::saveQuery(const SavedQuery& query)
{
    return writing([&] { return writeSavedQuery(*m_state->store, query); });
}

Result<void> RunFile::removeQuery(const std::string& name)
{
    return writing([&] { return removeSavedQuery(*m_state->store, name); });
}

Result<RunFile::Table> RunFile::query(const std::string& sql, std::size_t maxRows, const Progress& progress,
                                      std::optional<double> seconds) const
{
    const double most = seconds.value_or(secondsForQuery(m_state->store->bytesNow()));
    STAGEWRIGHT_CHECK(prepareQueries(*m_state->store));
    return withAllSteps(
        *m_state->store, [&] { return runQuery(*m_state->store->database, sql, maxRows, most, progress); },
        progress.stop);
}

Result<void> RunFile::limitSize(std::int64_t bytes)
{
    Database& database = *m_state->store->database;
    STAGEWRIGHT_TRY(const auto page, database.integer("PRAGMA page_size"));
    const std::int64_t pages =
        bytes <= 0 ? 0xfffffffe : std::max<std::int64_t>(1, bytes / std::max<std::int64_t>(1, page));
    return database.execute(fmt::format("PRAGMA max_page_count={}", pages));
}

} // namespace stagewright
