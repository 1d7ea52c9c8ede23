// The batch script of a job: text that people can read, keep and edit.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "schedules/base/result.h"

namespace stagewright {

// A long option without its dashes, and its value ("" for one without a value).
using SlurmOption = std::pair<std::string, std::string>;
enum class SlurmProgram { Sbatch, Srun }; // whose option it is
// "nodes=2", "exclusive". Usage, which names --slurm or --srun: keys are [a-z-]+, values have no control characters;
// output, error, chdir and others are the job's own.
Result<SlurmOption> parseSlurmOption(const std::string& text, SlurmProgram of = SlurmProgram::Sbatch);
std::string toWord(const SlurmOption& option);    // "--nodes=2"
std::string toSetting(const SlurmOption& option); // "nodes=2"

struct BatchScript {
    std::string name;                 // of the job in the queue
    std::string folder;               // the job's, absolute
    std::vector<SlurmOption> options; // empty: a plain script for this computer, no #SBATCH lines
    std::vector<SlurmOption> srun;    // its own; not empty: the program runs under srun, also as one process
    std::vector<std::string> setup;   // lines of the user's
    std::vector<std::string> command; // program and arguments; quoted
    int tasks = 0;                    // > 0: under srun, so many processes by MPI
    bool queued = false;
};
std::string toText(const BatchScript& script);

} // namespace stagewright
