// The text blocks of simulate, report and record.
#pragma once

#include <string>
#include <vector>

#include "app/cli/text/figures.h"
#include "schedules/check/validate.h"
#include "traces/report/run_report.h"

namespace stagewright {

std::string headlineText(const Run& run, const RunReport& figures, bool colour);
std::string idleText(const RunReport& figures, bool colour);   // by cause and rank
std::string memoryText(const RunReport& figures, bool colour); // by rank, and who holds the peak
std::string overlapText(const RunReport& figures);
std::string criticalPathText(const Run& run, const RunReport& figures);
std::string largestGapsText(const StepContext& context, const RunReport& figures, std::size_t count);
std::string holdersText(const std::vector<Holder>& holders); // "stage 0: microbatches 0–3; stage 4: 1"
std::string metricText(double value, const std::string& unit, bool withSign, const Units& units);

} // namespace stagewright
