// What of the given costs has no effect: found by trying again with something else in its place. A new option of costs
// or key of cost files needs a line in optionVariations() at most.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/messages/channels.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"
#include "schedules/setup/setup.h"

namespace stagewright {

class Session;

inline constexpr std::size_t mostTriedOps = 2'000'000; // of all outcomes together: a few seconds

// All that costs can change in what a verb answers, as one number.
using CostOutcome = std::function<Result<std::uint64_t>(const Setup&)>;
// times and memory
Result<std::uint64_t> simulatedOutcome(const Schedule& schedule, const CostModel& costs, const Channels& channels = {});

// Options, kinds of unit costs and keys of a cost file, as they are written: "--keep", "OPT", "launch_ns". ops: that
// one outcome takes; none are tried where all would take too long.
std::vector<std::string> costsWithoutEffect(const Setup& options, const CostOutcome& outcome, std::size_t ops);

// "--keep is not used: no stage recomputes …", in one line where there are several. of: "1f1b".
void tellUnusedCosts(const Setup& options, const CostOutcome& outcome, std::size_t ops, const std::string& of,
                     Session& session);

} // namespace stagewright
