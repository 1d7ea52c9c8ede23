// Costs of a run whose backwards are whole, completed by the parts I and W of another run made alike: what they take and what I
// frees. Without them a split can't be predicted.
#pragma once

#include <optional>
#include <string>

#include "schedules/base/result.h"
#include "schedules/cost_model.h"
#include "traces/run.h"

namespace stagewright {

// Whether some stage has B but neither I nor W.
bool lacksSplit(const CostModel& costs, int ranks);

// Gives such stages I and W of `other`, times what F takes here over what it takes there, and the share that I frees. False, and
// nothing has changed: `other` lacks one of them, or is of other stages or units.
bool takeSplit(CostModel& costs, const CostModel& other, int ranks);

// Same model, layers by stage, microbatch size, backend, device, precision and ranks, as their configurations have them.
bool madeAlike(const Run& a, const Run& b);

struct SplitSource {
    std::int64_t run = 0;
    std::string name, schedule;
    CostModel costs;
};
// The newest measured run of the file that was made alike and knows I and W of every stage; nothing where there is none.
// O(runs of the file): one step of each is read until one fits.
Result<std::optional<SplitSource>> findSplit(const std::string& path, const Run& like);

} // namespace stagewright
