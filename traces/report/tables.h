// The tables of a report: every analysis of analyses.def, computed for one step of a run. `report --table`, JSON
// `tables`, the SQL functions report_NAME, the window's Tables and the HTML page iterate them.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "schedules/base/quantity.h"
#include "traces/analysis/analysis_registry.h"

namespace stagewright {

struct ReportTable : AnalysisRows {
    const AnalysisInfo* analysis = nullptr; // never null
    std::vector<TableColumn> columns;
    std::string unknown; // why there are no rows: a clause, lower case; empty: the run has the table
};

// Pure, for any thread. The timeline must be there; a step it doesn't have gives no rows or zeros.
ReportTable reportTable(const AnalysisInfo& analysis, const Run& run, int step);
// in the order of analyses.def; stopped: the first ones
std::vector<ReportTable> reportTables(const Run& run, int step, const std::stop_token& stop = {});

// Places of the columns that people are shown: that of the GPUs only where a rank has several.
std::vector<std::size_t> shownColumns(const ReportTable& table);

std::string reportFunction(const AnalysisInfo& analysis); // its name in SQL: "report_bubbles"

} // namespace stagewright
