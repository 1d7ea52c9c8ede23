// The virtual tables spans, memory and edges, which show the blocks to SQL, the functions report_NAME(run, step), and read-only queries
// over a run file.
#pragma once

#include "schedules/base/progress.h"
#include "traces/store/database.h"
#include "traces/store/run_file.h"

namespace stagewright {

Result<void> registerSqlTables(Database& database);
// Of every analysis (report_functions.cpp). No rows where the run or step does not exist or the table is unknown; without a step: of the
// representative one. An error of the query where no run is given.
Result<void> registerReportFunctions(Database& database);
Result<RunFile::Table> runQuery(Database& database, const std::string& sql, std::size_t maxRows, const Progress& progress);

} // namespace stagewright
