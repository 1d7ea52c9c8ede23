// The JSON objects of schedules and listed runs. A key that does not apply is null, never absent.
#pragma once

#include "app/cli/text/json.h"
#include "schedules/check/validate.h"
#include "traces/run/run.h"

namespace stagewright {

// The object of a report (traces/report/run_document.h) for a schedule that never ends: hung, the cycle, everything measured is
// null.
Json hungJson(const Schedule& schedule, const Validation& validation);
Json runInfoJson(const RunInfo& info, bool read); // not read: its damage is unknown
Json scheduleFaultsJson(const Schedule& schedule, const Validation& validation);

} // namespace stagewright
