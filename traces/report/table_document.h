// The tables of a report as sections of a document: all that an analysis says.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "schedules/survey/survey.h"
#include "traces/fit/residuals.h"
#include "traces/report/document/document.h"
#include "traces/report/tables.h"

namespace stagewright {

// Under that place, "": not in JSON. "tables.bubbles" has title, columns, rows, sentence and unknown, and where the analysis has them
// figures, plot and marks. At most so many rows are shown; JSON has them in ns and bytes.
document::Section tableSection(ReportTable table, const std::string& place, std::size_t mostShown);
// The same of a survey's table; JSON has times and sizes in the units.
document::Section tableSection(const SurveyTable& table, const std::string& place, const Units& units);

// Its times summed over its rows, each from 0.5 % of the first with its share of that: "device_time.idle_ns".
document::Section totalsSection(const ReportTable& table);

std::vector<std::string> tablesOf(ReportPart part); // their names
// The tables that --kernels shows; of a run without kernels only the one that says so.
std::vector<std::string> kernelTables(const Run& run);
// In JSON only: kernels, launch_gaps, links and roofline, each null where there is none.
document::Section kernelsSection(const StepContext& context, const std::string& place);
document::Section slackSection(const StepContext& context, const std::string& place); // of every op
document::Section residualsSection(const StepContext& context, const Residuals& residuals, const std::string& place);

} // namespace stagewright
