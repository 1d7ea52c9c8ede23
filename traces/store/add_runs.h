// Storing runs completely or not at all, in files that others may be reading meanwhile.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "traces/run/run.h"

namespace stagewright {

inline tl::unexpected<Error> storingCancelled() { return fail(ErrorCode::Cancelled, "storing was cancelled"); }

// Whether runs can be stored in `path`: a writable run file, or a name in a folder where one can be created. Check
// before long work.
Result<void> mayAddRuns(const std::string& path);

// Creates the file, or adds to the runs of an existing one; returns their ids. They are first written to a folder
// beside it, so that readers of the file wait only for the last step. With an Error (also Cancelled) it is unchanged
// and nothing is left beside it.
Result<std::vector<std::int64_t>> addRuns(const std::string& path, std::span<const Run* const> runs,
                                          const Progress& progress = {});

} // namespace stagewright
