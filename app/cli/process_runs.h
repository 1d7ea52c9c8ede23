// Verbs whose ranks are processes: a call that starts them, and what each of them is. The first one leads and speaks;
// the others run its ranks silently.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schedules/base/result.h"

namespace stagewright {

class ProcessJob;
class Session;

// How many processes mpirun or srun started, this one among them; none: this is a call by hand.
std::optional<int> launchedProcesses();

// How processes ended that this call started.
struct ProcessesEnd {
    int code = 0;
    // where the process that speaks for all was killed: what each rank was doing, a line each; else ""
    std::string standing;
};

// A call by hand: starts the same call as so many processes by the words of a launcher, says how, and what became of
// them. Those of mpirun have the time-out, and 20 s at least, to meet; others may be on other computers, out of sight.
Result<ProcessesEnd> startProcesses(int count, const std::vector<std::string>& launcher, double timeoutSeconds,
                                    Session& session);

// Runs the body without a job in a call by hand; else, as one of the processes, joins them first and ends together with
// them. body gives the exit code.
Result<int> inProcesses(Session& session, const std::function<Result<int>(std::shared_ptr<ProcessJob> job)>& body);

} // namespace stagewright
