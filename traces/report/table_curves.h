// Tables whose rows are a course, such as the loss by step: what is drawn of them as lines over their first column. The
// HTML page and the window's Tables show the same lines.
#pragma once

#include <string>
#include <vector>

#include "traces/report/tables.h"

namespace stagewright {

struct CurvePoint {
    double x = 0;
    double y = 0;
};

struct TableCurve {
    std::string title;
    std::vector<CurvePoint> points; // ascending in x; unknown and infinite values are left out
};

struct TableCurves {
    std::string across, up; // titles of the axes
    std::vector<TableCurve> curves;
    bool empty() const { return curves.empty(); }
    // Over all points; 0 to 0 if there are none.
    CurvePoint least() const;
    CurvePoint most() const;
};

// Empty for other tables, and where no line has two points.
TableCurves curvesOf(const ReportTable& table);

} // namespace stagewright
