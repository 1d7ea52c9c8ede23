// Costs and links from the command line.
#pragma once

#include "app/cli/options/options.h"
#include "schedules/text/link_text.h"

namespace stagewright {

// of a microbatch that the costs are of; units: 1; measured ones: 0, not known
int samplesOf(const CostOptions& options);
// What schedules that are searched may plan with: --costs where they are in units, --comm, --free-at-input; else unit
// costs.
GeneratorCosts generatorCosts(const CostOptions& options);
Result<CostModel> chooseCosts(const Schedule& schedule, const CostOptions& options);

} // namespace stagewright
