// The tables of a report: every analysis of analyses.def, computed for one step of a run. `report --table`, JSON
// `tables`, the SQL functions report_NAME, the window's Tables and the HTML page iterate them.
#pragma once

#include <string>
#include <vector>

#include "schedules/base/quantity.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/step_context.h"

namespace stagewright {

struct ReportTable : AnalysisRows {
    const AnalysisInfo* analysis = nullptr; // never null
    std::vector<TableColumn> columns;
    std::string unknown; // why there are no rows: a clause, lower case; empty: the run has the table
};

// May be called on any thread. A step that the run does not have gives no rows or zeros.
ReportTable reportTable(const AnalysisInfo& analysis, const StepContext& context);
// in the order of analyses.def; stopped: the first ones
std::vector<ReportTable> reportTables(const StepContext& context);

std::string reportFunction(const AnalysisInfo& analysis); // its name in SQL: "report_bubbles"

} // namespace stagewright
