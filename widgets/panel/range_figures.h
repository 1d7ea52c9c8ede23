// The figures of a step cut to a range of time: what the side panel prints while a range is selected. A pure function for any
// thread.
#pragma once

#include "widgets/panel/run_figures.h"
#include "widgets/view_state.h"

namespace stagewright {

// range: timeline time; it is cut to the step's window. Busy time is trimmed to it, gaps too (they keep their place in the
// report, those outside have no length), idle by cause is the sum of what is left; transfers count with the part inside;
// peaks are the most in use inside the range, what was carried into it included. The baseline, which is of a whole step, is
// left out. O(spans of the step + memory events of its ranks).
RunFigures figuresIn(const RunFigures& whole, const Timeline& timeline, const TimeRange& range);

} // namespace stagewright
