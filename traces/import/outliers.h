// Work whose times lie hours or years apart from everything else in a trace: its record was lost or is damaged (a
// kernel at time 0, a copy of yesterday, a duration that overflowed). One such time would make a step of milliseconds
// last for days.
#pragma once

#include <string>

#include "traces/foreign/foreign_trace.h"

namespace stagewright {

// Takes them out of the rank, so that no lane and no figure has them; they are kept as text in ForeignRank::outliers,
// with a note. Times are apart where nothing happens for an hour or more between them and the bulk of the times. Two
// windows of comparable size are left alone, unless 30 days separate them.
void takeOutliers(ForeignRank& rank);

std::string farText(Nanos time); // how far that is: "3.0 h", "12 days", "51 years"

} // namespace stagewright
