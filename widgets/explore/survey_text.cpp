#include "widgets/explore/survey_text.h"

namespace stagewright {

namespace {

QString surveyCell(const TableColumn& column, const TableCell& cell, const Units& units)
{
    const auto* whole = std::get_if<std::int64_t>(&cell);
    if (whole != nullptr && column.kind == ColumnKind::Time) return durationText(*whole, units);
    if (whole != nullptr && column.kind == ColumnKind::Size) return bytesText(*whole, units);
    const auto* text = std::get_if<std::string>(&cell);
    return text != nullptr && column.key == "schedule" ? scheduleTitle(*text) : qtText(cellText(column, cell, units));
}

} // namespace

TableText tableTextOf(const SurveyTable& table, const Units& units)
{
    TableText out;
    out.title = qtText(table.title);
    for (const TableColumn& column : table.columns) out.header << qtText(column.title);
    for (const TableRow& row : table.rows) {
        QStringList cells;
        for (std::size_t i = 0; i < row.size(); ++i) cells << surveyCell(table.columns[i], row[i], units);
        out.rows.push_back(std::move(cells));
    }
    return out;
}

} // namespace stagewright
