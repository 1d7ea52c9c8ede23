// Starting this program again as several processes, by mpirun.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "schedules/base/result.h"

namespace stagewright {

struct MpiStart {
    int processes = 1;
    std::vector<std::string> arguments; // of each process: the program's path first
};

// mpirun's arguments: more processes than cores are allowed, none is tied to a core; as root with what Open MPI asks for then. Unavailable
// where there is no mpirun on PATH.
Result<std::vector<std::string>> mpirunArguments(const MpiStart& start);
// The exit code of the processes; they have this program's standard input, output and error, the first one its input. A stop request reaches
// them as mpirun's end does: by SIGTERM. Blocks. Failed where they were ended by a signal.
Result<int> runUnderMpi(const std::vector<std::string>& mpirun, const std::stop_token& stop);

// This program's own arguments, its path first.
Result<std::vector<std::string>> ownArguments();

} // namespace stagewright
