// The JSON objects of simulate, report and record. A key that does not apply is null, never absent.
#pragma once

#include "app/cli/text/figures.h"
#include "app/cli/text/json.h"
#include "schedules/check/validate.h"
#include "traces/report/run_report.h"
#include "traces/run/notes.h"

namespace stagewright {

Json timeJson(Nanos nanos, const Units& units); // whole nanoseconds stay integers; rank shares are numbers
Json memoryJson(Bytes bytes, const Units& units);
Json runJson(const Run& run, const RunReport& figures);
// The same object of a schedule that never ends: hung, the cycle, everything measured is null.
Json hungJson(const Schedule& schedule, const Validation& validation);
// Every gap; sentence, chain and experiment of the `explained` longest, null in the others.
Json gapsJson(const StepContext& context, const RunReport& figures, std::size_t explained);
// Keys step_time_without_profiler_ns, step_time_with_profiler_ns, perturb, emulated_links, contention_median: what the
// run was made under; null where there is none.
Json madeUnderJson(const Run& run);
Json runInfoJson(const RunInfo& info, bool read); // not read: its damage is unknown
Json notesJson(const std::vector<Note>& notes);
Json scheduleFaultsJson(const Schedule& schedule, const Validation& validation);
Json idleJson(const IdleByCause& byCause, const Units& units); // every cause is a key

} // namespace stagewright
