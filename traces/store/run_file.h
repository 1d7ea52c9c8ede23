// The run file: a SQLite database with the suffix .stagewright that holds many runs (docs/database.md). Column blobs
// per track and step with their pyramid beside them; a virtual table `spans` for SQL; WAL while recording, one
// transaction per step, checkpointed to a single file on close. One writer per file. All calls of one RunFile from one
// thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "schedules/model/kinds.h"
#include "traces/run/notes.h"
#include "traces/run/run.h"

namespace stagewright {

inline constexpr std::int64_t wholeRunSpans = 1'000'000; // larger runs are read in parts

enum class OpenMode {
    Read,
    Write,
    Create,
}; // Write: must exist; Create: created if absent

class RunWriter;
struct RunStore;

struct RunDamage {
    std::int64_t spans = 0;  // that can be read
    std::int64_t blocks = 0; // blocks and rows that can't
};

class RunFile {
public:
    // A file that is not a run file, damaged, or of a newer version is an error with its name and the remedy. A run
    // left in state Recording by a killed writer is shown as Interrupted; its complete steps are there. One without a
    // measured step is not listed, and removed by the next writer. Checking the pages, or what a killed recording left,
    // may take a while: then `stop` ends it with Cancelled.
    static Result<std::unique_ptr<RunFile>> open(const std::string& path, OpenMode mode, std::stop_token stop = {});
    ~RunFile();
    // While true, opening and reading of every file in the program ends with Cancelled: it is closing. Any thread may
    // call it.
    static void endReading(bool end);

    const std::string& path() const;
    // What can't be read of a killed recording, as a sentence: its log is not beside the file, or in a folder that
    // can't be written to. Mostly empty.
    const std::string& missing() const;
    // Names of tables and indexes in the file that are not ours and are not read. Mostly empty.
    const std::string& ignored() const;
    // Where its runs are: the path, unless the file was removed, renamed or replaced while recording. "": they are
    // lost.
    const std::string& keptIn() const;
    Result<std::vector<RunInfo>> runs() const; // by id
    struct ListedRun {
        Run run;                 // its info, configuration, environment, costs and contention; nothing else
        std::vector<Note> notes; // its own
        Nanos timeUnit = 1;
        Bytes memoryUnit = 1;
    };
    // What a list shows of each, by id. Each table is read once, however many runs there are; what of it is damaged is
    // left out.
    using ListSink = std::function<void(ListedRun)>;
    Result<void> list(const ListSink& sink, const Progress& progress = {}) const;
    // A run by "3", "#3", name with or without its number (run_names.h), else schedule, with or without its parameters
    // ("interleaved-1f1b" finds "interleaved-1f1b v=2"); the newest of several. For an unknown one the error lists the
    // runs.
    Result<std::int64_t> find(const std::string& idOrName) const;
    // The timeline is never null. Damaged blocks are skipped and counted in info.damagedBlocks.
    Result<Run> read(std::int64_t id, const Progress& progress = {}) const;
    // The same without the steps before `firstStep`: only the new part of a growing run. Their memory still in use is
    // carried in, one event per rank, stage and category; the timeline's steps keep their numbers.
    Result<Run> readSteps(std::int64_t id, int firstStep, const Progress& progress = {}) const;
    // One step alone: no other step's spans are decoded. Of a run recorded step by step O(spans of the step).
    Result<Run> readStep(std::int64_t id, int step, const Progress& progress = {}) const;
    // The run with only some of its steps, for a report of `step` (−1: the representative one): that step, the sample
    // of sampleSteps(), the slowest ones, and what overlaps any of them. Run::median is set. The steps are found in the
    // stored bounds, so that the memory doesn't grow with the spans.
    Result<Run> readForReport(std::int64_t id, int step, const Progress& progress = {}) const;
    // Everything but what happened: the timeline is empty, with its units and the schedule it realises.
    Result<Run> readHeader(std::int64_t id) const;

    struct BlockBounds {
        std::int64_t row = 0; // of the table
        std::int64_t segment = 0;
        int step = 0;
        Nanos begin = 0;
        Nanos end = 0;
        std::int64_t spans = 0;
    };
    // Everything that overlaps [begin, end) of the run's time: spans, the edges between them, samples, and the memory
    // events inside with what was in use at the start, one event per rank, stage and category. Steps keep their
    // numbers. O(blocks of the file + spans of the blocks there). `rows`: of blocks(), those that overlap the range;
    // then no other block is looked at. `header`: of readHeader(), copied instead of read again.
    Result<Run> readRange(std::int64_t id, Nanos begin, Nanos end, const Progress& progress = {},
                          std::span<const BlockBounds> rows = {}, const Run* header = nullptr) const;

    // Runs too large for a timeline in memory are read in parts: the contents, then block after block.
    struct StepBounds {
        int step = 0;
        Nanos begin = 0; // of the first span on any track
        Nanos end = 0;
        std::int64_t spans = 0;
    };
    Result<std::vector<StepBounds>> steps(std::int64_t id) const;   // by step; those present. No block is decoded
    Result<std::vector<BlockBounds>> blocks(std::int64_t id) const; // about one per 4,096 spans. No block is decoded
    struct Content {
        RunInfo info;
        std::shared_ptr<const Schedule> schedule; // may be null
        TextPairs configuration;
        std::vector<Metric> metrics;
        std::vector<Track> tracks;           // in a timeline's order; begin/end of spans are 0
        std::vector<std::int64_t> spanCount; // by track
        std::vector<std::string> labels;     // by Span::label as given by streamSpans; [0] is empty
        std::vector<std::string> shapes;     // of launches (Timeline::shapeOf), by label; empty: the file has none
        Nanos begin = 0;
        Nanos end = 0;
        Nanos timeUnit = 1;
        Bytes memoryUnit = 1;
    };
    Result<Content> content(std::int64_t id) const;
    struct SpanBlock {
        std::size_t track = 0; // of Content::tracks
        int step = 0;
        std::span<const Span> spans; // at most blockRows, by start; valid during the call
    };
    // Every span of the run: segment by segment, track by track, by start. Of a run recorded step by step a track's
    // blocks come in order of time unless work crosses steps. The sink returns false to stop. Returns the number of
    // damaged blocks, which are skipped. Memory: one block.
    using SpanSink = std::function<bool(const SpanBlock&)>;
    Result<std::int64_t> streamSpans(std::int64_t id, const SpanSink& sink, const Progress& progress = {}) const;
    // Every memory event, up to blockRows at a time, each block of one rank and in order of time within a segment.
    using MemorySink = std::function<bool(std::span<const MemoryEvent>)>;
    Result<std::int64_t> streamMemory(std::int64_t id, const MemorySink& sink, const Progress& progress = {}) const;

    // Whether the run's data outside its blocks is unchanged since it was stored (names, notes and state may change);
    // empty if unknown, as for an interrupted recording. Blocks are checked when they are read.
    Result<std::optional<bool>> intact(std::int64_t id) const;

    // Looks at every row and block of the run, one at a time, whatever its size.
    Result<RunDamage> damage(std::int64_t id, const Progress& progress = {}) const;

    // Reads every page, table and index as SQLite sees them. Unreadable with the first thing that is wrong.
    Result<void> checkPages(std::stop_token stop = {}) const;

    // First view without reading the spans: occupancy per track and bucket from the stored pyramid. Bucket i of a track
    // starts at time begin + i × bucketWidth; a power of two; `begin` is the last multiple of it at or before the first
    // span.
    struct Overview {
        Nanos begin = 0;
        Nanos end = 0;
        Nanos bucketWidth = 0;
        std::vector<Track> tracks;                   // begin/end of spans are 0
        std::vector<std::vector<float>> busyByTrack; // busy share of each bucket, 0 … 1
        // The same by work, in 255ths of the bucket. The last one stands for everything else, too.
        static constexpr std::array<ColourClass, 4> works{ColourClass::Forward, ColourClass::Backward,
                                                          ColourClass::Weight, ColourClass::Optimizer};
        std::vector<std::vector<std::array<std::uint8_t, 4>>> sharesByTrack;
    };
    // At least this many buckets, and fewer than eight times as many (a run shorter than that many ns has one per ns).
    // `only`: tracks of other lanes are listed, with every bucket idle.
    Result<Overview> overview(std::int64_t id, int atLeastBuckets, std::optional<Lane> only = {}) const;

    // A whole run in one transaction; its id is the file's. Provenance, clock, ranks, steps and span count are those of
    // its timeline. Cancelled: nothing is stored.
    Result<std::int64_t> add(const Run& run, const Progress& progress = {});
    // Starts a run in state Recording, under its name or, if that is taken, as "NAME (2)" (run_names.h). Its timeline
    // and metric values are ignored, its metrics' units are used. Several runs may be recorded in turn.
    Result<std::unique_ptr<RunWriter>> begin(const Run& header);
    Result<void> rename(std::int64_t id, const std::string& name);
    Result<void> annotate(std::int64_t id, const std::string& note);
    Result<void> remove(std::int64_t id, std::stop_token stop = {}); // Cancelled: nothing is removed
    // appends its runs under new ids, all or none
    Result<void> merge(const std::string& otherPath, const Progress& progress = {});
    // Cancelled: the file is as it was, but for steps that were folded
    Result<void> compact(std::stop_token stop = {});

    // Notes of a run: its own, then, if requested, the op notes of the other runs of the same
    // schedule in this file (Note::fromRun). A file of version 1 or 2 has none; opening it for writing
    // brings it up to date.
    Result<std::vector<Note>> notes(std::int64_t id, bool carried = false) const;
    // Replaces the run's own notes; carried ones are ignored, ids of 0 get numbers.
    Result<void> setNotes(std::int64_t id, const std::vector<Note>& notes);
    Result<std::vector<Bookmark>> bookmarks() const; // by slot
    Result<void> setBookmark(const Bookmark& bookmark);
    Result<std::vector<SavedQuery>> savedQueries() const; // by name
    Result<void> saveQuery(const SavedQuery& query);      // replaces one with the same name
    Result<void> removeQuery(const std::string& name);

    // Rows of a read-only query, as text; `columns` first. The virtual table spans(run, step, rank, lane, stage, kind,
    // microbatch, start_ns, end_ns, cpu_ns, name), the views runs, steps, memory, edges, metrics, and the functions
    // report_NAME(run, step) of every analysis (analysis_registry.h) are there.
    struct Table {
        std::vector<std::string> columns;
        std::vector<std::vector<std::string>> rows;
        bool truncated = false;
    };
    // Only a single SELECT; anything that writes, attaches or sets is refused. truncated: there were more than maxRows,
    // or they have more than 256 MiB. seconds: how long it may compute; none: a minute, and a second for each MB of the
    // file. Then it is Failed.
    Result<Table> query(const std::string& sql, std::size_t maxRows = 100000, const Progress& progress = {},
                        std::optional<double> seconds = {}) const;

    // Refuses growth beyond this many bytes (whole pages) with the error of a full disk; 0: no limit. Not stored.
    Result<void> limitSize(std::int64_t bytes);

private:
    friend class RunWriter;
    friend class StepStreamWriter; // rows as they are stored
    friend class StreamReplay;
    struct State;
    const std::shared_ptr<RunStore>& store() const;
    explicit RunFile(std::unique_ptr<State> state);
    Result<void> change(std::int64_t id, const char* sql, const std::string& text);
    Result<void> writing(const std::function<Result<void>()>& write); // with the lock held
    std::unique_ptr<State> m_state;
};

// Appends complete steps. If it is destroyed without finish(), the run is Interrupted and keeps its complete steps.
class RunWriter {
public:
    ~RunWriter();
    std::int64_t id() const;
    // One row of the file, folded into its tables by finish(). `step` holds the spans of one step; metrics: one value
    // for each name. A full disk is an Error (Failed); what was appended before stays.
    Result<void> append(const Timeline& step, const std::vector<std::pair<std::string, double>>& metrics);
    // Behind the last step: the run's schedule is this, as steps ran in another order than the header's.
    Result<void> setSchedule(const Schedule& schedule);
    Result<void> finish(RunState state = RunState::Complete, const std::optional<CostModel>& costs = std::nullopt,
                        const Progress& progress = {});

private:
    friend class RunFile;
    struct State;
    explicit RunWriter(std::unique_ptr<State> state);
    std::unique_ptr<State> m_state;
};

} // namespace stagewright
