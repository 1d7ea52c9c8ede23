// Starting this program again as several processes, by a launcher (app/launch/launcher.h).
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "app/launch/child_process.h"
#include "schedules/base/result.h"

namespace stagewright {

struct MpiRun {
    std::vector<std::string> words; // of mpirun or another launcher, its absolute path first, and of the program
    int processes = 1;
    std::function<bool()> started; // whether one of the processes runs; may be empty
    // whether they have met: within 6 s where fewer files may be open than mpirun needs; may be empty
    std::function<bool()> joined;
    // Why they can't go on, in which case they are ended; asked every 0.2 s. May be empty
    std::function<std::optional<Error>()> stuck;
};
// How the processes ended, as the launcher says: their exit code, or the signal that ended one. They have this program's
// standard output and error. The end of its input is a stop request to the first one, which ends the others in good
// order (--stdin-control); it comes with the stop token, and if this program is killed. After 10 s more they are ended,
// the launcher itself as well. Unavailable where they never began; the error of stuck(). Blocks.
Result<ChildEnd> runUnderMpi(const MpiRun& run, const std::stop_token& stop);

// The launcher's words, with its absolute path, in front of the program's. Unavailable where it is not on PATH.
Result<std::vector<std::string>> launchedWords(std::vector<std::string> launcher,
                                               const std::vector<std::string>& program);

// The launcher's words for the mpirun that is on PATH: MPICH and its kin take none of Open MPI's options, and their
// mpirun says what it is. Others stay as they are.
std::vector<std::string> asMpirunTakes(std::vector<std::string> launcher, int processes);

// This program's own arguments, its path first.
Result<std::vector<std::string>> ownArguments();

} // namespace stagewright
