// The batch script of a job: text that people can read, keep and edit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/launch/batch_queue.h"
#include "app/launch/launcher.h"
#include "app/launch/python_ranks.h"
#include "schedules/base/result.h"

namespace stagewright {

struct BatchScript {
    std::string name;                       // of the job in the queue
    std::string folder;                     // the job's, absolute
    std::vector<SlurmOption> options;       // of sbatch
    std::vector<SlurmOption> srun;          // its own; not empty: the program runs under srun, also as one process
    std::vector<std::string> setup;         // lines of the user's
    std::vector<std::string> command;       // program and arguments; quoted
    int tasks = 0;                          // > 0: so many processes by MPI
    const Queue* queue = nullptr;           // that it is for; none: a plain script for this computer
    std::string launcher;                   // of the tasks, as --launcher; "": the queue's
    std::string container;                  // image that the program runs in; "": none
    bool gpus = false;                      // which the container is to see
    int nodes = 0;                          // 0: as the options say
    int gpusOfNode = 0;                     // that the queue is asked for
    std::vector<std::string> directives{};  // further lines of another queue's options, the user's
    std::vector<std::string> environment{}; // NAME=VALUE, exported
    std::vector<std::string> about{};       // comment lines: what it is, how its run is fetched
    std::optional<PythonRanks> python{};    // runs instead of the command, whose words are not used
};
// Usage where the launcher can't start it.
Result<std::string> toText(const BatchScript& script);

} // namespace stagewright
