// A job where it runs: its folder, starting it apart from whoever asked for it, its state.
//
//     job.sh        the script that runs it        steps.stream   complete steps (traces/store/step_stream.h)
//     events.jsonl  what --progress jsonl says     run.stagewright its run file there
//     log           everything else that it wrote  stop           asks it to stop, once it is there
//     ended.json    how it ended                   process, slurm who runs it
//     submitting    who gives it to the queue, until that has taken it
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/launch/batch_script.h"
#include "schedules/base/result.h"

namespace stagewright {

namespace jobfile {
inline constexpr const char* steps = "steps.stream";
inline constexpr const char* events = "events.jsonl";
inline constexpr const char* log = "log";
inline constexpr const char* stop = "stop";
inline constexpr const char* ended = "ended.json";
inline constexpr const char* run = "run.stagewright";
} // namespace jobfile

struct JobSetUp {
    std::string folder;               // absolute, there already
    std::string name;                 // in the queue
    std::vector<std::string> command; // program and arguments
    std::vector<std::string> setup;   // of the script
    std::vector<SlurmOption> slurm;   // of sbatch
    std::vector<SlurmOption> srun;
    bool queued = false;
    int tasks = 0;
    std::string launcher, container;
    bool gpus = false;
};

// Writes job.sh and starts it: by sbatch where it is queued, else in a session of its own with no terminal. Returns the
// queue's number of it, or "".
Result<std::string> startJobFolder(const JobSetUp& job);
Result<std::string> batchText(const JobSetUp& job); // job.sh; Usage where nothing there can start it

struct JobStatus {
    enum class Kind {
        Absent, // there is no such job
        Queued,
        Running,
        Ended,
        Lost, // no process, and no word of how it ended
    };
    Kind kind = Kind::Absent;
    std::string words;           // why it waits; how it ended
    std::optional<int> exitCode; // of one that has ended
    std::string lastLines;       // of its log, of one that is over
    bool operator==(const JobStatus&) const = default;
};
// One in a queue asks Slurm: every few seconds is often enough.
JobStatus jobStatus(const std::string& folder);

// Its number in the queue, if it is known; else "".
std::string queueNumberOf(const std::string& folder);

// Asks it to stop; one in the queue that does not run yet is cancelled.
Result<void> stopJobFolder(const std::string& folder);

} // namespace stagewright
