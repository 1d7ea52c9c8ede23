// The batch script of a job: text that people can read, keep and edit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/launch/launcher.h"
#include "app/launch/python_ranks.h"
#include "schedules/base/result.h"

namespace stagewright {

enum class SlurmProgram { Sbatch, Srun }; // whose option it is
// "nodes=2", "exclusive". Usage, which names --slurm or --srun: keys are [a-z-]+, values have no control characters;
// output, error, chdir and others are the job's own.
Result<SlurmOption> parseSlurmOption(const std::string& text, SlurmProgram of = SlurmProgram::Sbatch);

struct BatchScript {
    std::string name;                 // of the job in the queue
    std::string folder;               // the job's, absolute
    std::vector<SlurmOption> options; // empty: a plain script for this computer, no #SBATCH lines
    std::vector<SlurmOption> srun;    // its own; not empty: the program runs under srun, also as one process
    std::vector<std::string> setup;   // lines of the user's
    std::vector<std::string> command; // program and arguments; quoted
    int tasks = 0;                    // > 0: so many processes by MPI
    bool queued = false;
    std::string launcher;                   // of the tasks, as --launcher; "": srun
    std::string container;                  // image that the program runs in; "": none
    bool gpus = false;                      // which the container is to see
    int nodes = 0;                          // 0: as the options say
    std::vector<std::string> environment{}; // NAME=VALUE, exported
    std::vector<std::string> about{};       // comment lines: what it is, how its run is fetched
    std::optional<PythonRanks> python{};    // runs instead of the command, whose words are not used
};
// Usage where the launcher can't start it.
Result<std::string> toText(const BatchScript& script);

} // namespace stagewright
