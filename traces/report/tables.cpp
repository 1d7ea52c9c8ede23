#include "traces/report/tables.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

namespace stagewright {

ReportTable reportTable(const AnalysisInfo& analysis, const Run& run, int step)
{
    ReportTable table;
    table.analysis = &analysis;
    table.columns = analysis.columns();
    table.unknown = analysis.unknown(run);
    if (!table.unknown.empty()) return table;
    auto rows = analysis.rows(run, step);
    if (rows)
        static_cast<AnalysisRows&>(table) = std::move(*rows);
    else
        table.unknown = rows.error().message;
    return table;
}

std::vector<ReportTable> reportTables(const Run& run, int step, const std::stop_token& stop)
{
    std::vector<ReportTable> tables;
    for (const AnalysisInfo* analysis : allAnalyses())
        if (!stop.stop_requested()) tables.push_back(reportTable(*analysis, run, step));
    return tables;
}

std::vector<std::size_t> shownColumns(const ReportTable& table)
{
    std::vector<std::size_t> shown;
    for (std::size_t c = 0; c < table.columns.size(); ++c)
        if (table.columns[c].key != "gpu" || std::any_of(table.rows.begin(), table.rows.end(), [c](const auto& row) {
                return !std::holds_alternative<std::monostate>(row[c]);
            }))
            shown.push_back(c);
    return shown;
}

std::string reportFunction(const AnalysisInfo& analysis) { return fmt::format("report_{}", analysis.name); }

std::string cellText(const AnalysisColumn& column, const AnalysisCell& cell, const Units& units)
{
    if (const auto* text = std::get_if<std::string>(&cell)) return *text;
    if (const auto* real = std::get_if<double>(&cell))
        return column.kind == ColumnKind::Share ? formatPercent(*real) : fmt::format("{:.3g}", *real);
    const auto* whole = std::get_if<std::int64_t>(&cell);
    // no op or rank; a figure that is unknown
    if (whole == nullptr) return column.kind == ColumnKind::Text || column.kind == ColumnKind::Whole ? "none" : "–";
    if (column.kind == ColumnKind::Time) return units.timeText(*whole);
    return column.kind == ColumnKind::Size ? units.memoryText(*whole) : std::to_string(*whole);
}

} // namespace stagewright
