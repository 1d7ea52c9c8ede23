// Starting a job on a host or in a queue, and bringing its steps into a run file here while it runs. Used by `record
// --host`, `record --slurm` and `hosts attach|fetch|stop`.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "app/launch/hosts/host_list.h"
#include "app/launch/hosts/job_list.h"
#include "app/launch/slurm/slurm_option.h"
#include "schedules/base/result.h"

namespace stagewright {

// A file that goes along; an argument of the job names it as "{file:N}", N its place in the list.
struct SentFile {
    std::string path; // here
    std::string name; // there, in a folder of its own: at most 200 bytes, no slash and no control characters
};

struct JobOrder {
    HostJob job;                        // with id, host, verb, file
    std::vector<std::string> arguments; // for the program there; "{file:N}", "{job}" is the job's folder
    std::vector<SentFile> files;
    std::vector<SlurmOption> slurm; // of sbatch, where the job goes to the queue
    std::vector<SlurmOption> srun;  // of the program there
    int tasks = 0;                  // > 0: so many processes by MPI
    std::string launcher;           // of them; "": srun
    std::string container;          // image of the program there; "": none
    bool gpus = false;              // which the container is to see
};
// The batch script that startJob() would submit, made there; nothing is started.
Result<std::string> batchScriptOf(const JobOrder& order, const std::stop_token& stop = {});

// Said while a job is followed; all on the calling thread.
struct JobWatch {
    // one JSON object of --progress jsonl: runs and files are those here
    std::function<void(const std::string& line)> event{};
    std::function<void(const HostJob& job)> changed{};             // state or its words changed
    std::function<void(const std::string& sentence)> connection{}; // lost, and again
};

struct FollowOptions {
    // keeps trying for so long after the connection was lost, 20 s where there was none yet; 0: not at all
    double reconnectSeconds = 600;
    bool onlyWhatIsThere = false; // fetch: ends when everything that is there now is here
    bool stop = false;            // ask it to stop first
    bool onlyLooks = false;       // attach: a stop request ends following, and the job goes on
};

// Starts it. Its record is in the list of jobs from before the first byte is sent. Unavailable where the host can't be
// reached, lacks the program, or has another version: the error names the older end and what to do.
Result<HostJob> startJob(const JobOrder& order, const std::stop_token& stop = {});

// Until the job is over, or fetched as far as it is. A stop request stops the job there once, and goes on until its
// last steps are here. Unavailable where the connection is lost for longer than the options allow: the job goes on
// there. `job` is kept up to date.
Result<void> followJob(HostJob& job, const FollowOptions& options, const JobWatch& watch,
                       const std::stop_token& stop = {});

// Asks it to stop, and returns: it ends after its step, or is cancelled while it waits in a queue. Whoever follows it
// has its last steps.
Result<void> stopThere(const HostJob& job, const std::stop_token& stop = {});
// Removes its folder over there. One that runs is not stopped by it: stop it first.
Result<void> forgetThere(const HostJob& job, const std::stop_token& stop = {});

// Asks for the bytes that the jobs, all of one host and scratch, have over there, and keeps them with the jobs.
Result<void> measureThere(std::vector<HostJob*> jobs, const std::stop_token& stop = {});

// Runs `check` or `devices` there in the foreground; its output comes as it is written. Returns its exit code.
struct RemoteCall {
    std::string host;
    std::vector<std::string> arguments; // the verb first; "{file:N}"
    std::vector<SentFile> files;
};
struct RemoteOutput {
    std::function<void(const std::string& bytes)> out{};
    std::function<void(const std::string& bytes)> err{};
};
Result<int> callThere(const RemoteCall& call, const RemoteOutput& output, const std::stop_token& stop = {});

} // namespace stagewright
