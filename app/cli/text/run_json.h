// The JSON objects of schedules. A key that does not apply is null, never absent.
#pragma once

#include "app/cli/text/json.h"
#include "schedules/check/validate.h"

namespace stagewright {

// The object of a report (traces/report/run_document.h) for a schedule that never ends: hung, the cycle, everything measured is
// null.
Json hungJson(const Schedule& schedule, const Validation& validation);
Json scheduleFaultsJson(const Schedule& schedule, const Validation& validation);

} // namespace stagewright
