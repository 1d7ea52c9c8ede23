// Predictions of report and simulate: residuals of fitted costs, and answers to --what-if.
#pragma once

#include <string>
#include <vector>

#include "app/cli/run_json.h"
#include "schedules/what_if.h"
#include "traces/fit/residuals.h"

namespace CLI {
class App;
}

namespace stagewright {

std::string residualsText(const Run& run, const Residuals& residuals, const Units& units, bool colour);
Json residualsJson(const Run& run, const Residuals& residuals);

// Slack by kind and rank: ops without any, and the least and the most. As JSON of every op.
std::string slackText(const Run& run, const RunFigures& figures, bool colour);
Json slackJson(const Run& run, int step);

struct WhatIfRow {
    std::string question; // as given
    WhatIfAnswer answer;  // where it fails: of the schedule as it is
    std::string fault;    // why it can't be answered, such as a deadlock; empty: it is
};
void addWhatIfOption(CLI::App& app, std::vector<std::string>& questions);
// Each question by itself, against the schedule as it is.
Result<std::vector<WhatIfRow>> answerWhatIfs(const Schedule& schedule, const CostModel& costs, const std::vector<std::string>& questions,
                                             const Channels& channels = {});
std::string whatIfText(const std::vector<WhatIfRow>& rows, const Units& units, bool colour);
Json whatIfJson(const std::vector<WhatIfRow>& rows, const Units& units);

} // namespace stagewright
