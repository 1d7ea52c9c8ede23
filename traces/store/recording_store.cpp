// The file while it is recorded into, and one view of it while it is read.
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "schedules/base/open_files.h"
#include "traces/store/new_file.h"
#include "traces/store/run_store.h"
#include "traces/store/trust.h"

namespace stagewright {

namespace {

std::atomic<bool> readingEnds = false;

constexpr auto pauseBetweenViews = std::chrono::milliseconds(10), longestPause = std::chrono::milliseconds(300);
constexpr std::uintmax_t shortLog = std::uintmax_t{2} << 20;

// "x.stagewright" → "x.saved.stagewright", or with a number.
std::string freeNameBeside(const std::string& path)
{
    const std::filesystem::path whole(path);
    for (int number = 1;; ++number) {
        const auto name =
            whole.parent_path() / fmt::format("{}.saved{}{}", whole.stem().string(),
                                              number > 1 ? fmt::format("-{}", number) : "", whole.extension().string());
        std::error_code unknown;
        if (!std::filesystem::exists(name, unknown)) return name.string();
    }
}

// Small pages while a file is small: a step of a small model writes a page of the log, one of the table and little
// more. A file that is in use or already large keeps its own.
void makePagesSmall(Database& database)
{
    constexpr std::int64_t smallPage = 1024, smallFile = std::int64_t{1} << 20;
    const auto size = database.integer("PRAGMA page_size"), pages = database.integer("PRAGMA page_count");
    if (size && pages && *size > smallPage && *size * *pages <= smallFile)
        (void)database.execute(fmt::format("PRAGMA page_size={}; VACUUM", smallPage));
}

// A log takes its index beside it, of which SQLite makes this much at once. Without room for that the file would be
// left with an empty log that nobody can open, so it is looked for before there is one. A file system that can't say is
// trusted.
Result<void> roomForLog(const std::string& path)
{
    constexpr off_t bytes = off_t{48} << 10; // 32 KiB of index, and the first pages of the log
    const std::string folder = std::filesystem::path(path).parent_path().string();
    const int file = ::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0) return {};
    auto full = ::fallocate(file, 0, 0, bytes) != 0 ? noRoomLeft(errno, "file " + path) : std::nullopt;
    ::close(file);
    return full ? Result<void>(tl::unexpected(std::move(*full))) : Result<void>();
}

// How often SQLite's log has started over, as its header says.
std::uint32_t roundOfLog(const std::string& log)
{
    constexpr std::size_t at = 12;
    std::array<unsigned char, at + 4> head{};
    std::ifstream in(log, std::ios::binary);
    in.read(reinterpret_cast<char*>(head.data()), static_cast<std::streamsize>(head.size()));
    std::uint32_t round = 0;
    for (std::size_t i = at; i < head.size(); ++i) round = round << 8 | head[i];
    return round;
}

RunStore::Mark markOf(const std::string& path) // of no file: zeros
{
    struct stat present {};
    if (::stat(path.c_str(), &present) != 0) return {};
    return {present.st_dev, present.st_ino, present.st_size,
            std::int64_t{present.st_mtim.tv_sec} * 1'000'000'000 + present.st_mtim.tv_nsec};
}

RunStore::Log logOf(const std::string& path) { return {markOf(path + "-wal").inode, markOf(path + "-shm").inode}; }

std::string runsIn(Database& database)
{
    std::string text;
    auto rows = database.prepare("SELECT id, name, created_unix_ms, schedule_name FROM main.run ORDER BY id");
    while (rows) {
        const auto row = database.step(*rows);
        if (!row) return {};
        if (!*row) return text;
        for (int column = 0; column < 4; ++column) text += rows->text(column) + '\n';
    }
    return {};
}

// Recording only lets the file grow. But a reader that puts the whole log into it cuts off the room that was kept for
// what comes next.
std::int64_t leastBytes(const RunStore& store)
{
    if (store.log.inode == 0) return store.mark.bytes;
    const auto pages = store.database->integer("PRAGMA page_count"); // as the log has it
    return pages ? std::min(store.mark.bytes, *pages * store.pageSize) : store.mark.bytes;
}

// A database in WAL mode, its log and its index. Not of the file itself: closing that would release SQLite's locks.
bool canOpenAnother()
{
    std::array<int, 3> files{};
    bool all = true;
    for (int& file : files) all = (file = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0 && all;
    for (const int file : files)
        if (file >= 0) ::close(file);
    return all;
}

// Somebody else changed the file: it still has these runs, for whoever opens it, and its pages hold together where
// looking at them takes no time.
bool stillOurs(const RunStore& store, std::int64_t bytes)
{
    constexpr std::int64_t smallFile = 10'000'000;
    if (bytes < leastBytes(store)) return false;
    if (!canOpenAnother()) return true; // nothing shows that it is not
    const auto other = Database::open(store.path, SQLITE_OPEN_READONLY);
    if (!other || (bytes <= smallFile && !checkPages(**other, false))) return false;
    const std::string there = runsIn(**other);
    return !there.empty() && there == runsIn(*store.database);
}

// What was saved of a file that somebody wrote over, from memory, its log and what was left of it.
bool isWhole(const std::string& path)
{
    const auto file = RunFile::open(path, OpenMode::Write);
    if (!file || !(*file)->checkPages()) return false;
    const auto runs = (*file)->runs();
    if (!runs || runs->empty()) return false;
    for (const RunInfo& info : *runs) {
        const auto intact = (*file)->intact(info.id);
        const auto run = (*file)->read(info.id);
        if (!intact || *intact == false || !run || run->info.damagedBlocks > 0) return false;
    }
    return true;
}

} // namespace

void RunStore::committed()
{
    const Mark present = markOf(path);
    const bool moved = present.device != mark.device || present.inode != mark.inode;
    if (log.inode == 0)
        log = logOf(path);
    else if (!moved && log != logOf(path))
        restoreLog();
    mark = markOf(path);
}

// Where a reader is in the way, the next commit tries again.
void RunStore::restoreLog()
{
    sqlite3_busy_timeout(database->handle(), 0);
    database->quietly("PRAGMA wal_checkpoint(TRUNCATE)");
    database->quietly("PRAGMA journal_mode=DELETE");
    if (!inWal()) {
        database->quietly("PRAGMA journal_mode=WAL; SELECT count(*) FROM main.run");
        log = logOf(path);
    }
    sqlite3_busy_timeout(database->handle(), Database::busyMilliseconds);
}

Result<void> RunStore::mayWrite()
{
    if (mode == OpenMode::Read)
        return fail(ErrorCode::Usage, "file " + path + ": opened for reading only", "open it for writing");
    if (const auto most = largestFile();
        most && markOf(path).bytes >
                    static_cast<std::int64_t>(std::min<std::uint64_t>(*most, std::numeric_limits<std::int64_t>::max())))
        return tl::unexpected(*noRoomLeft(EFBIG, "file " + path)); // a change that fails could not be taken back
    return lock.acquire();
}

bool RunStore::inWal() const
{
    auto statement = database->prepare("PRAGMA journal_mode");
    if (!statement) return false;
    const auto row = database->step(*statement);
    return row && *row && statement->text(0) == "wal";
}

std::int64_t RunStore::bytesNow() const { return std::max(bytes, markOf(path).bytes) + markOf(path + "-wal").bytes; }

void RunStore::keepRoomInWal()
{
    pageSize = database->integer("PRAGMA page_size").value_or(0);
    database->keepRoom(pageSize);
}

void RunStore::leaveWal() noexcept
{
    database->quietly("PRAGMA wal_checkpoint(TRUNCATE)");
    sqlite3_busy_timeout(database->handle(), 0);
    database->quietly("PRAGMA journal_mode=DELETE");
    sqlite3_busy_timeout(database->handle(), Database::busyMilliseconds);
    if (!inWal()) database->keepRoom(0);
}

Result<void> RunStore::beginRecording()
{
    if (auto held = mayWrite(); !held) return held;
    // WAL: others read complete steps while this one appends. Refused where a reader is at it: then a journal does.
    if (writers == 0) {
        makePagesSmall(*database);
        if (auto room = roomForLog(path); !room) {
            lock.release();
            return room;
        }
        (void)database->execute(
            "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=256; PRAGMA journal_size_limit=4194304");
        (void)database->integer("SELECT EXISTS(SELECT 1 FROM main.run)"); // opens the log
        if (inWal()) keepRoomInWal();
        log = {};
        committed();
    }
    ++writers;
    return {};
}

Result<void> RunStore::appendStep(std::int64_t run, const LoggedStep& step, const StepRows& rows)
{
    return logStep(*database, run, step, rows); // the commit finds room for it
}

void RunStore::endRecording() noexcept
{
    if (--writers == 0 && !savedIn) {
        leaveWal();
    }
    lock.release();
}

RunStore::~RunStore()
{
    if (mode != OpenMode::Read || !ownLog || !database) return;
    // a reader does not put away the log of a killed recording: whether it is there shows whether steps are missing
    try {
        const Deadline deadline(*database, secondsFor(bytes));
        const auto left = database->integer("SELECT count(*) FROM main.run WHERE state='recording'");
        if (left && *left == 0) database->closingCheckpoints(true);
    } catch (const std::bad_alloc&) { // then it stays, too
    }
}

Result<void> RunStore::inPlace()
{
    const Mark present = markOf(path);
    const bool there = present.inode != 0;
    const bool same = there && present.device == mark.device && present.inode == mark.inode;
    const bool ours = same && (present == mark || stillOurs(*this, present.bytes));
    const bool guarded = lock.restore();
    if (!savedIn && ours && guarded) return {};
    const bool over = same && !ours;
    if (!savedIn) {
        savedIn = freeNameBeside(path);
        NewFile made(*savedIn);
        auto copied = database->prepare("VACUUM INTO ?");
        if (copied) copied->bind(std::string_view(*savedIn));
        const auto saved = copied ? database->run(*copied) : Result<void>(tl::unexpected(copied.error()));
        if (!saved || (over ? !isWhole(*savedIn) : !RunFile::open(*savedIn, OpenMode::Write))) {
            std::error_code absent;
            if (over) std::filesystem::remove(*savedIn, absent);
            savedIn = "";
        }
        // the log and its index are at the path, too, and would be taken for those of the file that is there now
        if (over) {
            std::error_code absent;
            for (const char* suffix : {"-wal", "-shm"}) std::filesystem::remove(path + suffix, absent);
        } else if (guarded) {
            if (auto transaction = Transaction::begin(*database);
                transaction && database->execute("UPDATE main.run SET state='interrupted' WHERE state='recording'"))
                (void)transaction->commit();
            (void)database->execute("PRAGMA wal_checkpoint(TRUNCATE)");
            leaveWal();
        }
        database->closingCheckpoints(false);
    }
    const std::string_view what = !there  ? "it was removed or renamed"
                                  : !same ? "another file was put in its place"
                                  : over  ? "another program wrote over it"
                                          : "its lock was removed and another program writes to it";
    if (savedIn->empty())
        return fail(ErrorCode::Failed,
                    fmt::format("file {}: {} while recording, and its runs could not be saved beside it", path, what),
                    "record again");
    return fail(ErrorCode::Failed,
                fmt::format("file {}: {} while recording; its runs are saved in {}", path, what, *savedIn));
}

void RunFile::endReading(bool end) { readingEnds = end; }

std::function<bool()> RunStore::endOf(std::stop_token stop)
{
    return [stop = std::move(stop)] { return readingEnds || stop.stop_requested(); };
}

Snapshot::Snapshot(RunStore& store, std::stop_token stop)
    : m_store(&store), m_watch(std::make_unique<Watch>(*store.database, RunStore::endOf(std::move(stop))))
{
    ++store.views;
}

Result<Snapshot> Snapshot::of(RunStore& store, std::stop_token stop)
{
    STAGEWRIGHT_CHECK(store.database->execute("SAVEPOINT reading"));
    store.viewTaken = std::chrono::steady_clock::now();
    Snapshot snapshot(store, std::move(stop));
    STAGEWRIGHT_CHECK(store.catchUp());
    return Result<Snapshot>(std::move(snapshot));
}

Snapshot::~Snapshot()
{
    m_watch.reset();
    if (m_store == nullptr) return;
    m_store->database->quietly("RELEASE reading");
    --m_store->views;
}

bool RunStore::viewIsOld() const
{
    return views == 1 && mode == OpenMode::Read && std::chrono::steady_clock::now() - viewTaken > longestView;
}

// SQLite's log starts over where nobody reads from it: all of it is put into the file first, and the writer gets a
// moment.
Result<void> RunStore::newView()
{
    if (auto released = database->execute("RELEASE reading"); !released) return released;
    if (lock.heldElsewhere()) {
        (void)sqlite3_wal_checkpoint_v2(database->handle(), "main", SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
        // one that has grown is worth some patience
        const std::string logFile = path + "-wal";
        const std::uint32_t round = roundOfLog(logFile);
        std::error_code none;
        const bool grown = std::filesystem::file_size(logFile, none) > shortLog && !none;
        const auto until = std::chrono::steady_clock::now() + longestPause;
        do {
            std::this_thread::sleep_for(pauseBetweenViews);
        } while (grown && roundOfLog(logFile) == round && std::chrono::steady_clock::now() < until);
    }
    auto begun = database->execute("SAVEPOINT reading");
    viewTaken = std::chrono::steady_clock::now();
    return begun;
}

Result<void> RunStore::catchUp()
{
    if (!logs) return {};
    for (;;) {
        STAGEWRIGHT_TRY(const auto more,
                        unfolded.catchUp(*database, mode == OpenMode::Read, [this] { return viewIsOld(); }));
        if (!more) return {};
        if (auto renewed = newView(); !renewed) return renewed;
    }
}

Result<void> RunStore::renewView()
{
    if (!viewIsOld()) return {};
    if (auto renewed = newView(); !renewed) return renewed;
    return catchUp();
}

Result<void> RunStore::loadSteps(std::int64_t run, std::int64_t firstStep, std::int64_t lastStep)
{
    // what comes meanwhile is read in one view: it may come faster than it is read
    const std::int64_t known = unfolded.last();
    for (;;) {
        STAGEWRIGHT_TRY(const auto more, unfolded.load(*database, mode == OpenMode::Read, run, firstStep, lastStep,
                                                       known, [this] { return viewIsOld(); }));
        if (!more) return {};
        if (auto renewed = renewView(); !renewed) return renewed;
    }
}

Result<void> RunStore::loadSteps()
{
    return loadSteps(UnfoldedSteps::everyRun, 0, std::numeric_limits<std::int64_t>::max());
}

Result<void> RunStore::renewWithSteps()
{
    if (!viewIsOld()) return {};
    if (auto renewed = renewView(); !renewed) return renewed;
    return loadSteps();
}

} // namespace stagewright
