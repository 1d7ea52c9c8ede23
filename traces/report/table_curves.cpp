#include "traces/report/table_curves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

namespace stagewright {

namespace {

// Columns of the same unit, by key, and the title of their axis.
struct Course {
    std::string_view table;
    std::string_view up;
    std::array<std::string_view, 2> columns;
};
constexpr std::array courses{Course{"loss_curves", "Loss, nats per token", {"loss", "synchronous_loss"}}};

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
    const auto course = std::find_if(courses.begin(), courses.end(), [&](const Course& each) { return each.table == table.analysis->name; });
    if (course == courses.end() || table.columns.empty()) return out;
    out.across = table.columns.front().title;
    out.up = course->up;
    bool any = false;
    for (const std::string_view key : course->columns) {
        const auto column = std::find_if(table.columns.begin(), table.columns.end(), [&](const AnalysisColumn& each) { return each.key == key; });
        if (column == table.columns.end()) continue;
        TableCurve curve{column->title, {}};
        for (const auto& row : table.rows)
            if (const auto x = valueOf(row.front()), y = valueOf(row[static_cast<std::size_t>(column - table.columns.begin())]); x && y) curve.points.push_back({*x, *y});
        any = any || curve.points.size() > 1;
        if (!curve.points.empty()) out.curves.push_back(std::move(curve));
    }
    return any ? out : TableCurves();
}

} // namespace stagewright
