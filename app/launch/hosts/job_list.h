// Jobs that run or ran elsewhere, and how far they have been fetched: one folder each in
// ~/.local/state/stagewright/jobs (XDG_STATE_HOME), with job.json, the steps and events fetched so far. They outlive
// this program and this computer's next start.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"
#include "traces/store/step_stream.h"

namespace stagewright {

enum class JobState {
    Starting, // asked for; not known to run
    Queued,   // in Slurm's queue
    Running,
    Ended, // and everything is here
    Lost,  // it ended without a word: killed, or its computer restarted; what it wrote is here
};
std::string_view toText(JobState state); // "starting", "queued", "running", "ended", "lost"

struct HostJob {
    std::string id;                     // [a-z0-9-]+, of this user; also the name of its folder over there
    std::string host;                   // "": this computer (Slurm)
    std::string scratch;                // the folder its own is in over there; "": where the host keeps its jobs
    std::string verb;                   // "record"
    std::vector<std::string> arguments; // as typed here, without the verb and without what says where
    std::string file;                   // absolute: where its runs come
    std::int64_t createdUnixMs = 0;
    bool slurm = false;
    std::string slurmJob; // its number in the queue
    JobState state = JobState::Starting;
    std::string detail; // in words: why it waits, how it ended
    std::optional<int> exitCode;
    int steps = 0;                // complete ones that are here, warm-up included
    int stepsAsked = 0;           // 0: unknown; as the job says it
    int stepsOrdered = 0;         // when it was started here; 0: unknown
    std::int64_t bytesThere = -1; // of its folder, when it was last asked; -1: unknown
    std::vector<ReplayedRun> runs;

    bool over() const { return state == JobState::Ended || state == JobState::Lost; }
};

// A job that a script of the user's runs, by its folder: "/shared/run1", or "HOST:/shared/run1" on a host. The one that
// is in the list already, else a new one, whose runs come into `file` ("": NAME.stagewright here). Usage: the folder's
// name can't be a job's, or another job has it.
Result<HostJob> jobOfFolder(std::string_view place, const std::string& file);
bool namesFolder(std::string_view place); // has a slash, or is a folder here with a script

std::string jobsFolder();
std::string folderOfJob(std::string_view id);
bool isJobId(std::string_view id);
std::string newJobId(std::string_view host); // "node1-20261123-0412-7f3a"

// The newest first. A folder without a readable job.json is left out and named in `damaged`.
std::vector<HostJob> readJobs(std::vector<std::string>* damaged = nullptr);
// By id or a unique beginning of one; "" or "latest" is the newest. Usage where there is none; the remedy lists the
// newest.
Result<HostJob> findJob(std::string_view id);
std::int64_t bytesHere(const HostJob& job);  // of its folder in the list
Result<void> keepJob(const HostJob& job);    // creates its folder (0700) at the first call; replaced as a whole
Result<void> forgetJob(std::string_view id); // its folder here goes; the run file stays

} // namespace stagewright
