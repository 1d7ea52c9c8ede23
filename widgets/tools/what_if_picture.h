// WhatIfPicture: a schedule with its costs, and the same with changes, both simulated and prepared for drawing one
// above the other. Pure functions for any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schedules/plan/what_if.h"
#include "widgets/timeline/timeline_panel.h"

namespace stagewright {

struct WhatIfQuestion {
    std::vector<WhatIfChange> changes;
    // of every link, in forwards of a rank (forwardUnit()), before the changes; < 0: from the costs
    double latency = -1;
    bool empty() const { return changes.empty() && latency < 0; }
    bool operator==(const WhatIfQuestion&) const = default;
};
std::string toText(const WhatIfQuestion& question); // its changes as in --what-if

// What does not depend on the question; computed once per run.
struct WhatIfBase {
    std::optional<Error> fault;
    std::shared_ptr<const Schedule> schedule;
    CostModel costs;
    Channels channels;
    std::optional<Lowering> lowering;
    std::optional<WhatIf> whatIf; // nullopt on a fault
    std::shared_ptr<const TimelinePanel> panel;
};

struct WhatIfPicture {
    std::optional<Error> fault;
    WhatIfAnswer answer;
    std::shared_ptr<const TimelinePanel> panel; // changed; null on a fault
};

// channels, lowering: as the run's messages travelled (traces/fit/executed_run.h).
WhatIfBase whatIfBase(std::shared_ptr<const Schedule> schedule, const CostModel& costs, const Channels& channels = {},
                      const std::optional<Lowering>& lowering = {});
WhatIfPicture whatIfPicture(const WhatIfBase& base, const WhatIfQuestion& question);

} // namespace stagewright
