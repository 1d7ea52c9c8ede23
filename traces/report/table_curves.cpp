#include "traces/report/table_curves.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

namespace stagewright {

namespace {

std::optional<double> valueOf(const AnalysisCell& cell)
{
    if (const auto* whole = std::get_if<std::int64_t>(&cell)) return static_cast<double>(*whole);
    if (const auto* real = std::get_if<double>(&cell); real != nullptr && std::isfinite(*real)) return *real;
    return {};
}

template <typename Better>
CurvePoint extreme(const std::vector<TableCurve>& curves, Better better)
{
    CurvePoint out;
    bool first = true;
    for (const TableCurve& curve : curves)
        for (const CurvePoint& point : curve.points) {
            out = first ? point : CurvePoint{better(out.x, point.x), better(out.y, point.y)};
            first = false;
        }
    return out;
}

} // namespace

CurvePoint TableCurves::least() const
{
    return extreme(curves, [](double a, double b) { return std::min(a, b); });
}

CurvePoint TableCurves::most() const
{
    return extreme(curves, [](double a, double b) { return std::max(a, b); });
}

TableCurves curvesOf(const ReportTable& table)
{
    TableCurves out;
    const AnalysisCurves& drawn = table.analysis->curves;
    if (drawn.up.empty() || table.columns.empty()) return out;
    out.across = table.columns.front().title;
    out.up = drawn.up;
    bool any = false;
    for (const std::string_view key : drawn.columns) {
        const auto column = std::find_if(table.columns.begin(), table.columns.end(),
                                         [&](const AnalysisColumn& each) { return each.key == key; });
        if (column == table.columns.end()) continue;
        TableCurve curve{column->title, {}};
        for (const auto& row : table.rows)
            if (const auto x = valueOf(row.front()),
                y = valueOf(row[static_cast<std::size_t>(column - table.columns.begin())]);
                x && y)
                curve.points.push_back({*x, *y});
        any = any || curve.points.size() > 1;
        if (!curve.points.empty()) out.curves.push_back(std::move(curve));
    }
    return any ? out : TableCurves();
}

} // namespace stagewright
