// Answers to --what-if, of report and simulate.
#pragma once

#include <string>
#include <vector>

#include "app/cli/text/run_json.h"
#include "schedules/plan/what_if.h"

namespace stagewright {

struct WhatIfRow {
    std::string question; // as given
    WhatIfAnswer answer;  // where it fails: of the schedule as it is
    std::string fault;    // why it can't be answered, such as a deadlock; empty: it is
};
// Each question by itself, against the schedule as it is.
Result<std::vector<WhatIfRow>> answerWhatIfs(const Schedule& schedule, const CostModel& costs,
                                             const std::vector<std::string>& questions, const Channels& channels = {},
                                             const std::optional<Lowering>& lowering = {});
std::string whatIfText(const std::vector<WhatIfRow>& rows, const Units& units, bool colour);
Json whatIfJson(const std::vector<WhatIfRow>& rows, const Units& units);

} // namespace stagewright
