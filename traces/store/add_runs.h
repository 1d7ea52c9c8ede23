// Storing runs whole or not at all, for what others may be reading meanwhile.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "traces/run.h"

namespace stagewright {

// Whether runs can be stored in `path`: a run file that may be written to, or a name in a folder where one can be made. To be
// asked before long work.
Result<void> mayAddRuns(const std::string& path);

// Makes the file, or adds to the runs of one that is there; gives their ids. They are written to a folder beside it first, so that
// readers of the file wait for the last step alone. With an Error (also Cancelled) it is as it was and nothing is left beside it.
Result<std::vector<std::int64_t>> addRuns(const std::string& path, std::span<const Run* const> runs, const Progress& progress = {});

} // namespace stagewright
