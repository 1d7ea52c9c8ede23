// A simulated run as a value: what `simulate` prints and stores, and what the window shows before any training.
#pragma once

#include <optional>

#include "schedules/base/result.h"
#include "schedules/messages/channels.h"
#include "schedules/messages/lower.h"
#include "traces/run/run.h"

namespace stagewright {

// Name, shape and schedule of a run that is simulated or about to be recorded; its timeline is null.
Run runOfSchedule(const Schedule& schedule);

// Complete, with schedule, costs and a timeline of one step. Its creation time is 0: set it when the run is stored.
// Fails if the schedule can't be simulated. lowering: the rule that inserted the schedule's sends and receives.
Result<Run> simulatedRun(const Schedule& schedule, const CostModel& costs, const Channels& channels = {},
                         const std::optional<Lowering>& lowering = {});

} // namespace stagewright
