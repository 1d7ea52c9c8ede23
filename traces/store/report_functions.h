// The tables of a report as functions of SQL, report_NAME(run, step).
#pragma once

#include "traces/store/database.h"

namespace stagewright {

// One table for every analysis (report_functions.cpp). No rows where the run or step does not exist or the table is
// unknown; without a step: of the representative one. An error of the query where no run is given.
Result<void> registerReportFunctions(Database& database);

} // namespace stagewright
