// Read-only SQL over a run file.
#pragma once

#include "schedules/base/progress.h"
#include "traces/store/database.h"
#include "traces/store/run_file.h"

namespace stagewright {

// seconds: how long it may compute.
Result<RunFile::Table> runQuery(Database& database, const std::string& sql, std::size_t maxRows, double seconds,
                                const Progress& progress);

} // namespace stagewright
