// What a run executed, to be simulated again: what levers, what-ifs, residuals and comparisons start from.
#pragma once

#include <optional>

#include "schedules/base/result.h"
#include "schedules/messages/channels.h"
#include "schedules/messages/lower.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"
#include "traces/run/run.h"

namespace stagewright {

struct ExecutedRun {
    Schedule schedule; // as its device ran it, with its sends and receives where they matter
    CostModel costs;
    Channels channels;
    std::optional<Lowering> lowering; // if the lists contain sends and receives: the rule that inserts them again
};

// With the run's own costs (costsOf()): simulated, its figure is the baseline of all that is said about it. Where sides
// wait for each other, or messages for a channel, a measured link takes as long as its messages were in transit. Usage
// error if it has no schedule.
Result<ExecutedRun> executedRun(const Run& run);
// The same with these costs: costsOf(run), or others, whose links stay.
enum class CostsAre {
    Own,
    Others,
};
Result<ExecutedRun> executedRun(const Run& run, CostModel costs, CostsAre whose);
// A usual step has no fitted jitter, as its draws are not the run's.
Result<ExecutedRun> usualRun(const Run& run);

// The schedule as the device ran it. If the timeline has no two ops in one interval, it ran pairs one op after the
// other: serialised().
Schedule asExecuted(const Schedule& schedule, const Timeline& timeline);

} // namespace stagewright
