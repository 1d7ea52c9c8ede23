// The figures of a step within a range of time, which the side panel prints while a range is selected. A pure function for any thread.
#pragma once

#include "widgets/panel/run_figures.h"
#include "widgets/view_state.h"

namespace stagewright {

// range: timeline time, cut to the step's window. Busy time and gaps are trimmed to it (gaps keep their place in the
// report; those outside have no length), idle by cause is the sum of the rest; transfers count with the part inside;
// peaks are the most in use within the range, including what is held at its start. The baseline, of a whole step, is
// omitted. O(spans of the step + memory events of its ranks).
RunFigures figuresIn(const RunFigures& whole, const Timeline& timeline, const TimeRange& range);

} // namespace stagewright
