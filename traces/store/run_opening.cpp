#include "traces/store/run_opening.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "traces/store/guarded_files.h"
#include "traces/store/merge.h"
#include "traces/store/new_file.h"
#include "traces/store/rows.h"
#include "traces/store/run_reader.h"
#include "traces/store/schema.h"
#include "traces/store/step_log.h"
#include "traces/store/trust.h"

namespace stagewright {

namespace {

constexpr int firstPages = 8192; // bytes, of files that no recording has grown: blocks are read in few pieces

// Runs whose writer was killed become interrupted if they have a measured step; the others go.
Result<void> settleRuns(Database& database)
{
    std::vector<std::int64_t> unmeasured;
    auto listed =
        forEachRow(database, // some steps may not be folded
                   "SELECT id FROM main.run WHERE state='recording' AND id > ? AND warmup_steps >= "
                   "max(steps, (SELECT ifnull(max(l.steps), 0) FROM main.step_log AS l WHERE l.run=main.run.id))",
                   std::numeric_limits<std::int64_t>::min(), [&](const Statement& row) -> Result<void> {
                       unmeasured.push_back(row.integer(0));
                       return {};
                   });
    if (!listed) return listed;
    STAGEWRIGHT_TRY(auto transaction, Transaction::begin(database));
    for (const std::int64_t id : unmeasured)
        if (auto done = removeRun(database, id); !done) return done;
    if (auto done = database.execute("UPDATE main.run SET state='interrupted' WHERE state='recording'"); !done)
        return done;
    return transaction.commit();
}

// Runs whose writer was killed: say so in the file, and leave the WAL behind.
Result<void> settle(RunStore& store)
{
    constexpr double foldingTakes = 10; // times as long as reading
    if (store.lock.heldElsewhere()) return {};
    STAGEWRIGHT_TRY(const auto left, store.database->integer("SELECT count(*) FROM run WHERE state='recording'"));
    STAGEWRIGHT_TRY(const auto logged, runsWithLoggedSteps(*store.database));
    const bool wal = store.inWal();
    if (left == 0 && logged.empty() && !wal) return {};
    if (auto held = store.lock.acquire(); !held) return {}; // another writer started in between
    const RecordingLockHold hold(store.lock);
    if (wal) store.keepRoomInWal();
    const Deadline deadline(*store.database, foldingTakes * secondsFor(store.bytes));
    // on a full disk they stay: readers know both forms
    for (const std::int64_t run : logged) (void)foldSteps(*store.database, run);
    if (left > 0)
        if (auto done = settleRuns(*store.database); !done) return done;
    if (wal) store.leaveWal();
    return {};
}

// How long opening a file may compute.
Error takesTooLong(const std::string& path)
{
    return {ErrorCode::Unreadable,
            fmt::format("file {}: it takes too long to open, so it is damaged or made to do so", path),
            "restore it from a copy"};
}

enum class Readable {
    Yes,
    No,
    TooLong,
};

// SQLite opens a database without looking at it.
Readable canRead(Database& database, std::int64_t bytes, const std::function<bool()>& ends)
{
    const Watch watch(database, ends);
    const Deadline deadline(database, secondsFor(bytes));
    (void)database.integer("SELECT count(*) FROM sqlite_schema WHERE name<>''"); // row by row, unlike a plain count
    const int code = sqlite3_errcode(database.handle()) & 0xff;
    if (deadline.passed()) return Readable::TooLong;
    return code != SQLITE_CANTOPEN && code != SQLITE_READONLY ? Readable::Yes : Readable::No;
}

// Opened, and with what is not this file's beside it as sentences.
struct Opened {
    std::unique_ptr<Database> database;
    Leftovers beside;
    std::string leftAlone;
    std::string missing;
};

std::string leftAloneText(const std::string& path, const Leftovers& beside)
{
    std::string text;
    if (beside.journal == Leftover::Foreign)
        text = fmt::format("{}-journal beside it is not of this file as it is, so it is left alone and not read", path);
    if (beside.log == Leftover::Foreign)
        text += fmt::format("{}{}-wal beside it is not the log of this file as it is, so it is left alone and not read",
                            text.empty() ? "" : "; ", path);
    return text;
}

bool hasForeign(const Leftovers& beside)
{
    return beside.journal == Leftover::Foreign || beside.log == Leftover::Foreign;
}

// For reading: read and write where that is possible, so that a WAL or journal that a killed program left is recovered,
// but with writing turned off.
Result<Opened> openToRead(const std::string& path, std::int64_t bytes, const std::function<bool()>& ends, bool alone)
{
    Opened opened;
    auto database = Database::open(path, SQLITE_OPEN_READWRITE);
    if (database) {
        opened.beside = leftoversOf((*database)->handle());
        if (alone) opened.beside.log = Leftover::Foreign;
    }
    if (hasForeign(opened.beside)) {
        opened.leftAlone = leftAloneText(path, opened.beside);
        database = Database::openAlone(path);
        if (!database) return tl::unexpected(std::move(database.error()));
        opened.database = std::move(*database);
        return opened;
    }
    const auto take = [&]() -> Result<Opened> {
        opened.database = std::move(*database);
        return std::move(opened);
    };
    if (database && sqlite3_db_readonly((*database)->handle(), "main") == 0) {
        const Readable readable = canRead(**database, bytes, ends);
        if (readable == Readable::TooLong) return tl::unexpected(takesTooLong(path));
        if (readable == Readable::Yes) {
            STAGEWRIGHT_CHECK((*database)->execute("PRAGMA query_only=1"));
            return take();
        }
    }
    database = Database::open(path, SQLITE_OPEN_READONLY);
    if (!database) return tl::unexpected(std::move(database.error()));
    const bool wal = isInWal((*database)->handle());
    const Readable readable = canRead(**database, bytes, ends);
    if (readable == Readable::TooLong) return tl::unexpected(takesTooLong(path));
    if (readable == Readable::Yes || !wal) return take();
    if (opened.beside.log != Leftover::None)
        opened.missing = fmt::format("its log {}-wal can't be read in a folder that is read-only, so its last steps "
                                     "are missing; copy both files to a folder that you may write to",
                                     path);
    database = Database::openAlone(path);
    if (!database) return tl::unexpected(std::move(database.error()));
    return take();
}

// A writer would put it into the file, or write over it.
Result<Opened> openToWrite(const std::string& path, OpenMode mode)
{
    STAGEWRIGHT_TRY(auto database,
                    Database::open(path, SQLITE_OPEN_READWRITE | (mode == OpenMode::Create ? SQLITE_OPEN_CREATE : 0)));
    Opened opened;
    opened.beside = leftoversOf(database->handle());
    if (hasForeign(opened.beside))
        return fail(ErrorCode::Unavailable, fmt::format("file {}: {}", path, leftAloneText(path, opened.beside)),
                    "move it to another folder before you write to the file");
    opened.database = std::move(database);
    return opened;
}

// A killed recording without the log that it was killed with.
Result<std::string> whatIsMissing(RunStore& store, bool wal, bool log)
{
    if (!wal || log || store.lock.heldElsewhere()) return std::string();
    const auto left = store.database->integer("SELECT count(*) FROM main.run WHERE state='recording'");
    const auto all = store.database->integer("SELECT EXISTS(SELECT 1 FROM main.run)");
    if (!left || !all) return tl::unexpected(!left ? left.error() : all.error());
    if (*left == 0 && *all > 0) return std::string();
    return fmt::format("it was killed while recording and its log {}-wal is not beside it, so its {} may be missing",
                       store.path, *all == 0 ? "runs" : "last steps");
}

// The version of a file whose schema is the known one and whose pages hold together. Those of a file that grows are not
// looked at.
Result<int> trusted(RunStore& store, Leftover log)
{
    constexpr std::int64_t smallFile = 10'000'000;
    Database& database = *store.database;
    auto version = checkRunFile(database);
    if (!version) return version;
    STAGEWRIGHT_TRY(auto ignored, checkSchema(database, *version));
    for (const std::string& name : ignored) store.ignored += (store.ignored.empty() ? "" : ", ") + name;
    if ((store.bytes <= smallFile || log == Leftover::Unmarked) && !store.lock.heldElsewhere())
        STAGEWRIGHT_CHECK(checkPages(database, false));
    return version;
}

// In memory, unless many steps are not folded.
Result<void> keepTemporaries(RunStore& store)
{
    constexpr std::int64_t many = 16384;
    const auto steps =
        store.logs ? store.database->integer("SELECT max(id) - min(id) FROM main.step_log") : Result<std::int64_t>(0);
    if (!steps) return tl::unexpected(steps.error());
    return store.database->execute(fmt::format("PRAGMA temp_store={}", *steps > many ? "FILE" : "MEMORY"));
}

Result<void> setUp(Database& database)
{
    STAGEWRIGHT_TRY(const auto tables, database.integer("SELECT count(*) FROM sqlite_schema WHERE name<>''"));
    STAGEWRIGHT_TRY(const auto application, database.integer("PRAGMA application_id"));
    if (tables != 0 || application != 0) return {};
    if (auto done = database.execute(fmt::format("PRAGMA page_size={}", firstPages)); !done) return done;
    return migrate(database, 0, migrations());
}

// Every statement until the file is open; SQLite's errors are those of the deadline once it has passed.
Result<void> makeReady(RunStore& store, const Opened& opened, bool wal)
{
    const std::int64_t fileBytes = store.bytes;
    constexpr std::int64_t largestStep = 1'000'000'000; // SQLite's own limit of a row
    Database& database = *store.database;
    const bool reading = store.mode == OpenMode::Read;
    if (auto done = limitFor(database, reading ? fileBytes : std::max(fileBytes, largestStep), fileBytes); !done)
        return done;
    if (store.mode == OpenMode::Create)
        if (auto done = setUp(database); !done) return done;
    STAGEWRIGHT_TRY(const auto version, trusted(store, opened.beside.log));
    if (store.missing.empty() && opened.leftAlone.empty()) {
        STAGEWRIGHT_TRY(store.missing, whatIsMissing(store, wal, opened.beside.log != Leftover::None));
    }
    store.version = reading ? version : runFileVersion();
    store.logs = store.version >= 5;
    store.ownLog = opened.beside.log != Leftover::Unmarked && opened.leftAlone.empty();
    if (reading) return {};
    database.closingCheckpoints(true);
    return migrate(database, version, migrations());
}

Result<std::shared_ptr<RunStore>> openOnce(const std::string& path, OpenMode mode, const std::function<bool()>& ends,
                                           std::int64_t bytes, bool alone)
{
    STAGEWRIGHT_TRY(auto opened,
                    mode == OpenMode::Read ? openToRead(path, bytes, ends, alone) : openToWrite(path, mode));
    auto store = std::make_shared<RunStore>(path, mode, std::move(opened.database));
    const Watch watch(*store->database, ends);
    store->bytes = bytes;
    store->missing = opened.missing.empty() ? opened.leftAlone : opened.missing;
    const bool wal = isInWal(store->database->handle());
    const auto inTime = [&](auto open) -> Result<void> {
        const Deadline deadline(*store->database, secondsFor(bytes));
        auto done = open();
        if (!done && deadline.passed()) return tl::unexpected(takesTooLong(path));
        if (done && ends()) return fail(ErrorCode::Cancelled, "file " + path + ": cancelled");
        return done;
    };
    if (auto done = inTime([&] { return makeReady(*store, opened, wal); }); !done) {
        if (opened.beside.log == Leftover::Unmarked && mode != OpenMode::Read &&
            done.error().code == ErrorCode::Unreadable && !alone)
            done.error().remedy = fmt::format("if {}-wal beside it is of another recording, move it to another folder; "
                                              "else restore the file from a copy",
                                              path);
        const bool again = opened.beside.log == Leftover::Unmarked && mode == OpenMode::Read &&
                           done.error().code == ErrorCode::Unreadable && !alone;
        if (again) return openOnce(path, mode, ends, bytes, true);
        return tl::unexpected(std::move(done.error()));
    }
    if (mode != OpenMode::Read) {
        store->database->keepDigests();
        STAGEWRIGHT_CHECK(inTime([&] { return settle(*store); }));
        if (auto done =
                store->database->execute("PRAGMA synchronous=NORMAL; PRAGMA cache_size=-32768; PRAGMA secure_delete=0");
            !done)
            return tl::unexpected(done.error());
    }
    STAGEWRIGHT_CHECK(
        inTime([&]() -> Result<void> { // a table that is missing shows now, not in the middle of something
            if (auto done = keepTemporaries(*store); !done) return done;
            return inSnapshot(*store,
                              [&] { return eachRunInfo(*store, [](const RunInfo&) { return Result<void>(); }); });
        }));
    return store;
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

Result<std::shared_ptr<RunStore>> openRunStore(const std::string& name, OpenMode mode, std::stop_token stop)
{
    const std::string path = withoutLinks(name);
    // A device or pipe can't hold a database, and a journal would stay beside it.
    std::error_code unknown;
    const auto kind = std::filesystem::status(path, unknown).type();
    if (kind != std::filesystem::file_type::regular && kind != std::filesystem::file_type::not_found &&
        kind != std::filesystem::file_type::none && kind != std::filesystem::file_type::directory)
        return fail(ErrorCode::Unreadable, "file " + path + ": not a regular file, so it can't hold runs",
                    "choose a file");
    const std::int64_t bytes = kind == std::filesystem::file_type::regular
                                   ? static_cast<std::int64_t>(std::filesystem::file_size(path, unknown))
                                   : 0;
    if (mode != OpenMode::Create && kind == std::filesystem::file_type::regular && bytes == 0)
        return fail(ErrorCode::Unreadable, "file " + path + ": the file is empty (0 bytes)",
                    "restore it from a copy, or record again");
    if (mode != OpenMode::Read && kind == std::filesystem::file_type::regular &&
        std::filesystem::hard_link_count(path, unknown) > 1 && !unknown)
        return fail(ErrorCode::Unavailable,
                    "file " + path +
                        ": it has another name (a hard link), under which another program could write to it",
                    "copy the file, and write to the copy");
    std::optional<NewFile> created; // by us
    if (mode == OpenMode::Create) created.emplace(path);
    auto store = openOnce(path, mode, RunStore::endOf(std::move(stop)), bytes, false);
    if (store && created) created->keep();
    return store;
}

} // namespace stagewright
