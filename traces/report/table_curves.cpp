#include "traces/report/table_curves.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "schedules/base/text.h"

namespace stagewright {

namespace {

std::optional<double> valueOf(const TableCell& cell)
{
    if (const auto* whole = std::get_if<std::int64_t>(&cell)) return static_cast<double>(*whole);
    if (const auto* real = std::get_if<double>(&cell); real != nullptr && std::isfinite(*real)) return *real;
    return {};
}

} // namespace

std::string curveValue(const PlotSeries& curve, double x)
{
    const auto at = std::lower_bound(curve.points.begin(), curve.points.end(), x,
                                     [](const PlotPoint& point, double value) { return point.x < value; });
    return at == curve.points.end() || at->x != x ? "unknown" : fixedNumber(at->y, 3);
}

Plot curvesOf(const ReportTable& table)
{
    Plot out;
    const AnalysisCurves& drawn = table.analysis->curves;
    if (drawn.up.empty() || table.columns.empty()) return out;
    out.across = std::string(table.columns.front().title);
    out.up = std::string(drawn.up);
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
    if (!any) return {};
    out.saysChoice = true;
    std::set<double> places;
    for (const PlotSeries& curve : out.series)
        for (const PlotPoint& point : curve.points) places.insert(point.x);
    int column = 0;
    for (const double x : places) {
        std::vector<std::string> values;
        for (const PlotSeries& curve : out.series) values.push_back(lowered(curve.title) + " " + curveValue(curve, x));
        out.items.push_back(
            PlotItem::band(x, x, fmt::format("{} {}: {}", out.across.title, x, joined(values)), column++));
    }
    return out;
}

} // namespace stagewright
