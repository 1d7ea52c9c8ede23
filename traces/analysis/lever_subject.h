// What a run gives the levers.
#pragma once

#include "traces/analysis/levers.h"

namespace stagewright {

// For a run: its schedule as its device ran it, its costs or fitted ones, channels and disturbances from its
// configuration, and steps in which a rank stood out from its own median. Usage error if it has no schedule or no
// costs.
Result<LeverSubject> leverSubjectOf(const StepContext& context);

} // namespace stagewright
