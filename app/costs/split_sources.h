// Where the split of a backward that a run did not measure is taken from: one rule for the command line and the window.
#pragma once

#include <string>
#include <vector>

#include "app/costs/split_costs.h"
#include "schedules/base/result.h"

namespace stagewright {

// What a recorded run has, in the order in which completeSplit asks for it: what the run's own layers took, the
// newest run of its file that was set up alike, and the model's shape. Without a file: not that run. Reads the costs of
// the file's runs until one fits.
Result<std::vector<SplitSource>> splitSources(const RunFile* file, const Run& run, const CostModel& costs);

// Costs with every kind of backward: I and W together where B is missing, B parted where they are. file: of the run;
// "": none.
struct BackwardCosts {
    CostModel costs;
    std::vector<SplitSource> sources; // asked only where something was missing
    SplitUse use;
};
BackwardCosts withBackward(CostModel costs, const Run& run, int ranks, const std::string& file);

} // namespace stagewright
