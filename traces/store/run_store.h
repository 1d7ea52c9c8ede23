// Shared by RunFile and its RunWriters: the connection, the lock, and the steps of reading and writing a run.
#pragma once

#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "schedules/base/text_map.h"
#include "traces/run/run.h"
#include "traces/store/codec.h"
#include "traces/store/database.h"
#include "traces/store/recording_lock.h"
#include "traces/store/run_file.h"
#include "traces/store/step_log.h"

namespace stagewright {

struct RunStore {
    RunStore(std::string filePath, OpenMode openMode, std::unique_ptr<Database> opened)
        : path(std::move(filePath)), mode(openMode), database(std::move(opened)), lock(path)
    {
    }

    ~RunStore();
    RunStore(const RunStore&) = delete;
    RunStore& operator=(const RunStore&) = delete;

    std::string path;
    OpenMode mode;
    std::unique_ptr<Database> database;
    RecordingLock lock;
    int writers = 0;           // live RunWriters
    std::int64_t pageSize = 0; // while recording
    struct Mark {
        std::uint64_t device = 0, inode = 0;
        std::int64_t bytes = 0, changed = 0; // when, in ns
        bool operator==(const Mark&) const = default;
    };
    Mark mark; // of the file while recording, as the last commit left it
    struct Log {
        std::uint64_t inode = 0, index = 0; // of SQLite's log and of the index to it; 0: there is none
        bool operator==(const Log&) const = default;
    };
    Log log;                       // while recording
    std::int64_t bytesNow() const; // of the file and its log
    int version = 0;               // of the file, as it is read
    bool ownLog = false;           // its log, if there is one, is known to be its own
    std::int64_t bytes = 0;        // of the file, as it was opened
    bool queries = false;          // the tables, functions and views of SQL are there
    bool logs = true;              // the file has steps that may not be folded yet: version 5 and later
    UnfoldedSteps unfolded;

    Result<void> mayWrite(); // acquires the lock; release it afterwards
    // Around a recording: others read complete steps while it grows. beginRecording() holds the lock until the matching
    // endRecording(), the last of which makes a single file again.
    Result<void> beginRecording();
    void endRecording() noexcept;
    // While recording: a step as one row of step_log. Within a transaction.
    Result<void> appendStep(std::int64_t run, const LoggedStep& step, const StepRows& rows);
    bool inWal() const;
    void keepRoomInWal(); // every commit, see Database::keepRoom()
    // Back to a single file; where another program has it open it stays in WAL mode, checkpointed.
    void leaveWal() noexcept;
    // While somebody else records, reading lets go of its view of the file after half a second and goes on in a new
    // one, so that SQLite's log can start over: what is read only grows, or moves from the log of steps into the
    // tables, which both show. Only within one snapshot, not within two.
    bool viewIsOld() const;
    Result<void> renewView(); // if it is old
    Result<void> newView();
    Result<void> catchUp(); // with the steps that are not folded; may renew the view
    // The blocks of steps that are not folded: all, or of the run's segments that may hold something of these steps.
    // May renew the view.
    Result<void> loadSteps();
    Result<void> loadSteps(std::int64_t run, std::int64_t firstStep, std::int64_t lastStep);
    // the view if it is old, and all blocks of steps that are not folded
    Result<void> renewWithSteps();
    std::chrono::milliseconds longestView{500};               // what is done at a time may double it
    int views = 0;                                            // snapshots, one within the other
    static std::function<bool()> endOf(std::stop_token stop); // it is requested, or RunFile::endReading() was called
    std::chrono::steady_clock::time_point viewTaken;

    // While recording: the file and its lock are still those that were opened, and nobody else wrote over it. Else its
    // runs are saved beside it, once, and the Error says where or that they are lost; nothing more is written to the
    // path.
    Result<void> inPlace();
    // While recording, after each commit: what inPlace() compares with. If SQLite's log was removed, all of it is put
    // into the file, and there is a new one.
    void committed();
    void restoreLog();

    std::string ignored; // RunFile::ignored()
    std::string missing; // RunFile::missing()
    // while recording, where the runs were saved after the file was lost; "": nowhere
    std::optional<std::string> savedIn;
};

// One view of the file while it lives, even while another process appends, with the steps that are not folded yet. What
// is read without one lacks them.
class Snapshot {
public:
    static Result<Snapshot> of(RunStore& store, std::stop_token stop);
    Snapshot(Snapshot&& other) noexcept
        : m_store(std::exchange(other.m_store, nullptr)), m_watch(std::move(other.m_watch))
    {
    }
    Snapshot(const Snapshot&) = delete;
    Snapshot& operator=(const Snapshot&) = delete;
    Snapshot& operator=(Snapshot&&) = delete;
    ~Snapshot();

private:
    Snapshot(RunStore& store, std::stop_token stop);
    RunStore* m_store;
    std::unique_ptr<Watch> m_watch;
};

// read() within a snapshot. It ends with Cancelled when the stop is requested, and after RunFile::endReading().
template <typename Read>
auto inSnapshot(RunStore& store, Read read, std::stop_token stop = {}) -> decltype(read())
{
    STAGEWRIGHT_TRY(const auto snapshot, Snapshot::of(store, std::move(stop)));
    return read();
}

// The same with the blocks of steps that are not folded.
template <typename Read>
auto withAllSteps(RunStore& store, Read read, std::stop_token stop = {}) -> decltype(read())
{
    return inSnapshot(
        store,
        [&]() -> decltype(read()) {
            STAGEWRIGHT_CHECK(store.loadSteps());
            return read();
        },
        std::move(stop));
}

struct StepRange {
    int first = 0;
    int last = std::numeric_limits<int>::max();
    // only these steps, ascending, from first to last; empty: all between
    std::span<const int> chosen = {};
    std::optional<std::pair<Nanos, Nanos>> times = {}; // only what overlaps [first, second)
    std::span<const RunFile::BlockBounds> rows = {};   // with times: the blocks to look at; empty: all
    const Run* header = nullptr;                       // read before; null: read it
    bool whole() const { return first <= 0 && last == std::numeric_limits<int>::max() && !times; }
};

// Writes the parts of one run. All calls within a transaction of the caller's.
class RunRows {
public:
    RunRows(Database& database, std::int64_t run) : m_database(database), m_run(run) {}

    static Result<std::int64_t> insertHeader(Database& database, const Run& run, RunState state);
    std::int64_t run() const { return m_run; }
    Result<void> declareMetrics(const std::vector<Metric>& metrics);
    // One timeline as one segment. If cancelled, the transaction must be rolled back.
    Result<void> addSegment(const Timeline& timeline, const Progress& progress = {});
    Result<void> addMetric(const std::string& name, const std::string& unit, std::int64_t step, double value);
    Result<void> setCosts(const CostModel& costs);
    Result<void> setSchedule(const Schedule& schedule); // and that its steps are of it
    Result<void> setState(RunState state);
    // Keeps or discards what the last transaction added to the run (numbers of tracks, labels …).
    void accept() { m_committed = m_known; }
    void rollBack();
    std::int64_t steps() const { return m_known.steps; }

private:
    struct Known {
        std::int64_t segments = 0;
        std::int64_t spans = 0;
        std::int64_t steps = 0; // highest step + 1
        Nanos begin = 0;
        Nanos end = 0;
        bool hasUnits = false;
        std::map<std::tuple<int, Lane, std::string>, std::int64_t> tracks;
        std::int64_t labels = 0; // how many have a number
        std::map<std::tuple<int, std::string, std::string>, std::int64_t> counters;
        std::map<std::string, std::int64_t> metrics;
        std::map<std::tuple<int, int, MemoryCategory>, MemoryEvent> inUse; // after all segments so far; delta: bytes
    };

    Result<std::int64_t> trackNumber(const Track& track);
    Result<std::int64_t> labelNumber(std::string_view key); // text, zero, shape of the launch
    Result<void> numberLabels(const Timeline& timeline);
    Result<void> addSpans(const Timeline& timeline, const Track& track, const Progress& progress);
    Result<void> addSpanBlock(std::int64_t track, SpanId first, std::span<const Span> spans,
                              std::span<const Nanos> cpu);
    Result<void> addPyramid(std::int64_t track, std::span<const Span> spans);
    Result<void> addMemory(const Timeline& timeline, const Progress& progress);
    Result<void> addMemoryBase();
    Result<void> addEdges(const Timeline& timeline, const Progress& progress);
    Result<void> addCounters(const Timeline& timeline);
    Result<void> updateRun(const Timeline& timeline);

    Database& m_database;
    std::int64_t m_run;
    BlockEncoder m_encoder;
    std::vector<Span> m_scratch;
    TextMap<std::int64_t> m_labelNumbers; // in the file, from 1, by text, zero and shape
    std::vector<std::uint32_t> m_labels;  // of the segment: these, by label of its timeline
    std::vector<Nanos> m_cpu;
    Known m_known;
    Known m_committed;
};

} // namespace stagewright
