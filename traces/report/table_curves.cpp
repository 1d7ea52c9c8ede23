#include "traces/report/table_curves.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

namespace stagewright {

namespace {

std::optional<double> valueOf(const TableCell& cell)
{
    if (const auto* whole = std::get_if<std::int64_t>(&cell)) return static_cast<double>(*whole);
    if (const auto* real = std::get_if<double>(&cell); real != nullptr && std::isfinite(*real)) return *real;
    return {};
}

} // namespace

Plot curvesOf(const ReportTable& table)
{
    Plot out;
    const AnalysisCurves& drawn = table.analysis->curves;
    if (drawn.up.empty() || table.columns.empty()) return out;
    out.across = table.columns.front().title;
    out.up = drawn.up;
    bool any = false;
    for (const std::string_view key : drawn.columns) {
        const auto column = std::find_if(table.columns.begin(), table.columns.end(),
                                         [&](const TableColumn& each) { return each.key == key; });
        if (column == table.columns.end()) continue;
        PlotSeries curve{column->title, {}};
        for (const auto& row : table.rows)
            if (const auto x = valueOf(row.front()),
                y = valueOf(row[static_cast<std::size_t>(column - table.columns.begin())]);
                x && y)
                curve.points.push_back({*x, *y});
        any = any || curve.points.size() > 1;
        if (!curve.points.empty()) out.series.push_back(std::move(curve));
    }
    return any ? out : Plot();
}

} // namespace stagewright
