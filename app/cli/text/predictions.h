// Answers to --what-if, of report and simulate.
#pragma once

#include <string>
#include <vector>

#include "schedules/plan/what_if.h"
#include "traces/report/document/document.h"

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
document::Section whatIfSection(const std::vector<WhatIfRow>& rows); // under "what_if"

} // namespace stagewright
