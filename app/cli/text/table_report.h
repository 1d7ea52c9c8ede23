// The tables of a report (traces/report/tables.h) as text and JSON, and what --kernels, --slack and --residuals are
// short for.
#pragma once

#include <string>
#include <vector>

#include "app/cli/text/run_json.h"
#include "schedules/survey/survey.h"
#include "traces/fit/residuals.h"
#include "traces/report/tables.h"

namespace stagewright {

std::string shortened(const std::string& name); // to the width of a column, with an ellipsis

std::string inLine(std::string title); // "Sender waits" → "sender waits", "TFLOP" as it is
// At most so many rows, and how many more there are. Why the table is unknown, where it is.
std::string tableText(const ReportTable& table, const Units& units, bool colour, std::size_t mostRows);
std::string tableText(const SurveyTable& table, const Units& units, bool colour); // all rows
// {"title", "columns": [{"key", "title", "unit"}], "rows": [{key: cell}], "sentence", "unknown"}
Json tableJson(const ReportTable& table);
Json tableJson(const SurveyTable& table, const Units& units); // the same, times and sizes in the units

std::vector<std::string> tablesOf(ReportPart part); // their names
// The tables that --kernels prints; of a run without kernels only the one that says so.
std::vector<std::string> kernelTables(const Run& run);
// {"kernels": [...], "launch_gaps": {...}, "links": [...], "roofline": [...] or null}
Json kernelsJson(const StepContext& context);
Json slackJson(const StepContext& context); // of every op
Json residualsJson(const StepContext& context, const Residuals& residuals);

} // namespace stagewright
