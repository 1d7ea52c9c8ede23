// The virtual tables spans, memory and edges, which show the blocks to SQL, the functions report_NAME(run, step), and
// read-only queries over a run file.
#pragma once

#include "schedules/base/progress.h"
#include "traces/store/database.h"
#include "traces/store/run_file.h"

namespace stagewright {

Result<void> registerSqlTables(Database& database);

} // namespace stagewright
