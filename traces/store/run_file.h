// The run file: a SQLite database with the suffix .stagewright that holds many runs (docs/database.md). Column blobs per
// track and step with their pyramid beside them; a virtual table `spans` for SQL; WAL while recording, one transaction a
// step, checkpointed to a single file on close. One writer a file. All calls of one RunFile from one thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "traces/run.h"

namespace stagewright {

enum class OpenMode { Read, Write, Create }; // Write: must exist; Create: made where absent

class RunWriter;

class RunFile {
public:
    // A file that is no run file, damaged, or of a newer version is an error naming it and the remedy. A run left in state
    // Recording by a killed writer is shown as Interrupted; its complete steps are there.
    static Result<std::unique_ptr<RunFile>> open(const std::string& path, OpenMode mode);
    ~RunFile();

    const std::string& path() const;
    Result<std::vector<RunInfo>> runs() const; // by id
    // A run by "3", "#3", name, else schedule, with or without its parameters ("interleaved-1f1b" finds
    // "interleaved-1f1b v=2"); of several the newest. An unknown one lists what there is.
    Result<std::int64_t> find(const std::string& idOrName) const;
    // The timeline is never null. Blocks that are damaged are left out and counted in info.damagedBlocks.
    Result<Run> read(std::int64_t id, const Progress& progress = {}) const;
    // The same without the steps before `firstStep`: of a run that grows, only what is new. Their memory still in use is
    // carried in, one event per rank, stage and category; the timeline's steps keep their numbers.
    Result<Run> readSteps(std::int64_t id, int firstStep, const Progress& progress = {}) const;

    // First view without reading the spans: occupancy per track and bucket from the stored pyramid. Bucket i of a track
    // starts at begin + i × bucketWidth; a power of two, so begin is the last multiple of it at or before the first span.
    struct Overview {
        Nanos begin = 0;
        Nanos end = 0;
        Nanos bucketWidth = 0;
        std::vector<Track> tracks;                   // begin/end of spans are 0
        std::vector<std::vector<float>> busyByTrack; // busy share of each bucket, 0 … 1
    };
    // At least so many buckets, and fewer than eight times as many (a run shorter than that many ns has one per ns).
    Result<Overview> overview(std::int64_t id, int atLeastBuckets) const;

    // A whole run in one transaction; its id is the file's. Provenance, clock, ranks, steps and span count are those of
    // its timeline.
    Result<std::int64_t> add(const Run& run);
    // Begins a run in state Recording (its timeline and metric values are not looked at, its metrics' units are). Several
    // runs may be recorded in turn.
    Result<std::unique_ptr<RunWriter>> begin(const Run& header);
    Result<void> rename(std::int64_t id, const std::string& name);
    Result<void> annotate(std::int64_t id, const std::string& note);
    Result<void> remove(std::int64_t id);
    Result<void> merge(const std::string& otherPath); // appends its runs under new ids
    Result<void> compact();

    // Rows of a read-only query, as text; `columns` first. The virtual table spans(run, step, rank, lane, stage, kind,
    // microbatch, start_ns, end_ns, cpu_ns, name) and the views runs, steps, memory, edges, metrics are there.
    struct Table {
        std::vector<std::string> columns;
        std::vector<std::vector<std::string>> rows;
        bool truncated = false;
    };
    // Only a single SELECT; anything that writes, attaches or sets is refused. truncated: there were more than maxRows.
    Result<Table> query(const std::string& sql, std::size_t maxRows = 100000, const Progress& progress = {}) const;

    // Refuses growth beyond so many bytes (whole pages) with the error of a full disk; 0: no limit. Not stored.
    Result<void> limitSize(std::int64_t bytes);

private:
    friend class RunWriter;
    struct State;
    explicit RunFile(std::unique_ptr<State> state);
    Result<void> change(std::int64_t id, const char* sql, const std::string& text);
    std::unique_ptr<State> m_state;
};

// Appends complete steps. If it is destroyed without finish(), the run is Interrupted and keeps its complete steps.
class RunWriter {
public:
    ~RunWriter();
    std::int64_t id() const;
    // One transaction. `step` holds the spans of one step; metrics: one value for each name. A full disk is an Error
    // (Failed); what was appended before stays.
    Result<void> append(const Timeline& step, const std::vector<std::pair<std::string, double>>& metrics);
    Result<void> finish(RunState state = RunState::Complete, const std::optional<CostModel>& costs = std::nullopt);

private:
    friend class RunFile;
    struct State;
    explicit RunWriter(std::unique_ptr<State> state);
    std::unique_ptr<State> m_state;
};

} // namespace stagewright
