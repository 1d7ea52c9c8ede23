// The virtual tables spans, memory and edges, which show the blocks to SQL, and read-only queries over a run file.
#pragma once

#include "schedules/base/progress.h"
#include "traces/store/database.h"
#include "traces/store/run_file.h"

namespace stagewright {

Result<void> registerSqlTables(Database& database);
Result<RunFile::Table> runQuery(Database& database, const std::string& sql, std::size_t maxRows, const Progress& progress);

} // namespace stagewright
