// The report of a part of a step.
#pragma once

#include "traces/report/run_report.h"

namespace stagewright {

// The report cut to a range of the timeline's time, itself cut to the step's window. Busy time is trimmed to it, gaps
// too (they keep their place in the report, those outside have no length), idle by cause is the sum of what is left;
// transfers count with the part inside; peaks are the most in use inside the range, what was carried into it included.
// Levers, samples and baseline, which are of whole steps, are as they were, but for the baseline, which is left out.
// O(spans of the step + memory events of its ranks).
RunReport reportIn(const RunReport& whole, const Timeline& timeline, Nanos begin, Nanos end);

} // namespace stagewright
