#include "schedules/base/table.h"

#include <fmt/format.h>

#include "schedules/base/csv_line.h"

namespace stagewright {

std::string_view TableColumn::unit() const
{
    return kind == ColumnKind::Time    ? "ns"
           : kind == ColumnKind::Size  ? "bytes"
           : kind == ColumnKind::Share ? "fraction"
                                       : "";
}

std::string cellText(const TableColumn& column, const TableCell& cell, const Units& units)
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

std::string cellValue(const TableColumn& column, const TableCell& cell, const Units& units)
{
    if (const auto* text = std::get_if<std::string>(&cell)) return *text;
    if (const auto* real = std::get_if<double>(&cell)) return fmt::format("{:.6g}", *real);
    const auto* whole = std::get_if<std::int64_t>(&cell);
    if (whole == nullptr) return {};
    if (column.kind == ColumnKind::Time && units.shares()) return fmt::format("{}", units.timeValue(*whole));
    if (column.kind == ColumnKind::Size && units.memory != 1) return fmt::format("{}", units.memoryValue(*whole));
    return std::to_string(*whole);
}

std::string csvOf(const std::vector<TableColumn>& columns, const std::vector<TableRow>& rows, const Units& units)
{
    std::vector<std::string> line;
    for (const TableColumn& column : columns) line.push_back(column.key);
    std::string out = csvLine(line);
    for (const TableRow& row : rows) {
        for (std::size_t i = 0; i < columns.size(); ++i) line[i] = cellValue(columns[i], row[i], units);
        out += csvLine(line);
    }
    return out;
}

} // namespace stagewright
