// Slurm's queue by its own programs: sbatch, squeue, sacct or scontrol, scancel.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedules/base/result.h"

namespace stagewright {

struct SlurmState {
    enum class Kind {
        Queued,
        Running,
        Done,
        Failed,
        TimeLimit,
        Cancelled,
        Unknown, // Slurm no longer knows the job
    };
    Kind kind = Kind::Unknown;
    int restarts = 0;  // how often it was queued again
    std::string words; // "queued: waits for resources", "running on node1", "ended at its time limit of 1:00:00"
    bool over() const
    {
        return kind == Kind::Done || kind == Kind::Failed || kind == Kind::TimeLimit || kind == Kind::Cancelled;
    }
};

// The number of the new job, which the script calls `name`. Unavailable where Slurm is missing, Failed with what sbatch
// said.
Result<std::string> submitBatch(const std::string& scriptFile, const std::string& name);
// The number of this user's job of that name; "": Slurm doesn't know one, or does not say.
std::string jobNamed(const std::string& name);
Result<SlurmState> slurmState(const std::string& job);
Result<void> cancelBatch(const std::string& job);

// The nodes of the job that this program runs in, by name; empty where it runs in none, or on its only node.
Result<std::vector<std::string>> nodesOfThisJob();
bool inSlurmJob();   // whether this program runs in one
int slurmRestarts(); // how often Slurm queued that job again

// What squeue, sacct and scontrol say, read: for tests. Empty text: not known to that program.
std::optional<SlurmState> readSqueue(const std::string& text);
std::optional<SlurmState> readSacct(const std::string& text);
std::optional<SlurmState> readScontrol(const std::string& text);

} // namespace stagewright
