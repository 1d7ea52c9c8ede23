// Tables whose rows are a course, such as the loss by step: what is drawn of them as lines over their first column. The
// HTML page and the window's Tables show the same lines.
#pragma once

#include "schedules/base/plot.h"
#include "traces/report/tables.h"

namespace stagewright {

// Unknown and infinite values are left out. Empty for other tables, and where no line has two points.
Plot curvesOf(const ReportTable& table);
std::string curveValue(const PlotSeries& curve, double x); // "3.750"; "unknown" where it has no point

} // namespace stagewright
