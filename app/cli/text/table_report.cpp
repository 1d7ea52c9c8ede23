#include "app/cli/text/table_report.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <span>

#include <fmt/format.h>

#include "app/cli/text/table.h"
#include "schedules/model/kinds.h"
#include "traces/analysis/kernels.h"
#include "traces/analysis/launch_gaps.h"
#include "traces/analysis/roofline.h"

namespace stagewright {

std::string shortened(const std::string& name)
{
    constexpr std::size_t most = 56;
    if (displayWidth(name) <= most) return name;
    std::size_t end = most - 1;
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) --end;
    return name.substr(0, end) + "…";
}

namespace {

Json cellJson(const TableColumn& column, const TableCell& cell, const Units& units)
{
    if (const auto* whole = std::get_if<std::int64_t>(&cell)) {
        if (column.kind == ColumnKind::Time) return timeJson(*whole, units);
        if (column.kind == ColumnKind::Size) return memoryJson(*whole, units);
        return *whole;
    }
    if (const auto* real = std::get_if<double>(&cell)) return *real;
    const auto* text = std::get_if<std::string>(&cell);
    return text != nullptr ? Json(*text) : Json(nullptr);
}

// Rows as objects; keys: these columns only, empty: all.
Json rowsJson(const std::vector<TableColumn>& columns, const std::vector<TableRow>& rows, const Units& units = {},
              const std::vector<std::string_view>& keys = {})
{
    Json out = Json::array();
    for (const TableRow& row : rows) {
        Json object = Json::object();
        for (std::size_t i = 0; i < row.size(); ++i)
            if (keys.empty() || std::find(keys.begin(), keys.end(), columns[i].key) != keys.end())
                object[columns[i].key] = cellJson(columns[i], row[i], units);
        out.push_back(std::move(object));
    }
    return out;
}

Json rowsJson(const ReportTable& table, const std::vector<std::string_view>& keys = {})
{
    return rowsJson(table.columns, table.rows, {}, keys);
}

Json columnsJson(const std::vector<TableColumn>& columns, const Units& units = {})
{
    Json out = Json::array();
    for (const TableColumn& column : columns) {
        std::string unit(column.unit());
        if (column.kind == ColumnKind::Time) unit = units.timeName();
        if (column.kind == ColumnKind::Size && units.memory != 1) unit = "microbatches";
        out.push_back({{"key", column.key}, {"title", column.title}, {"unit", textOrNull(std::move(unit))}});
    }
    return out;
}

// The columns in `shown`.
std::string rowsText(const std::vector<TableColumn>& columns, const std::vector<std::size_t>& shown,
                     std::span<const TableRow> rows, const Units& units, bool colour)
{
    std::vector<Table::Column> heads;
    for (const std::size_t c : shown)
        heads.push_back(
            {inLine(columns[c].title), columns[c].kind == ColumnKind::Text ? Table::Align::Left : Table::Align::Right});
    Table out(std::move(heads));
    for (const TableRow& row : rows) {
        std::vector<std::string> cells;
        for (const std::size_t c : shown) cells.push_back(shortened(cellText(columns[c], row[c], units)));
        out.add(std::move(cells));
    }
    return out.text(colour);
}

} // namespace

std::string inLine(std::string title)
{
    if (title.size() > 1 && std::islower(static_cast<unsigned char>(title[1])) != 0)
        title[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(title[0])));
    return title;
}

std::string tableText(const ReportTable& table, const Units& units, bool colour, std::size_t mostRows)
{
    if (!table.unknown.empty()) return table.unknown + "\n";
    const std::span rows(table.rows);
    std::string text =
        rowsText(table.columns, shownColumns(table), rows.first(std::min(mostRows, rows.size())), units, colour);
    if (rows.size() > mostRows) text += fmt::format("{} more rows: --json\n", rows.size() - mostRows);
    if (!table.sentence.empty()) text += table.sentence + "\n";
    return text;
}

std::string tableText(const SurveyTable& table, const Units& units, bool colour)
{
    std::vector<std::size_t> all(table.columns.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    std::string text = rowsText(table.columns, all, table.rows, units, colour);
    if (!table.sentence.empty()) text += table.sentence + "\n";
    return text;
}

Json tableJson(const ReportTable& table)
{
    return {{"title", std::string(table.analysis->title)},
            {"columns", columnsJson(table.columns)},
            {"rows", table.unknown.empty() ? rowsJson(table) : Json(nullptr)},
            {"sentence", textOrNull(table.sentence)},
            {"unknown", textOrNull(table.unknown)}};
}

Json tableJson(const SurveyTable& table, const Units& units)
{
    return {{"title", table.title},
            {"columns", columnsJson(table.columns, units)},
            {"rows", rowsJson(table.columns, table.rows, units)},
            {"sentence", textOrNull(table.sentence)},
            {"unknown", nullptr}};
}

std::vector<std::string> tablesOf(ReportPart part)
{
    std::vector<std::string> names;
    for (const AnalysisInfo* analysis : allAnalyses())
        if (analysis->part == part) names.emplace_back(analysis->name);
    return names;
}

std::vector<std::string> kernelTables(const Run& run)
{
    std::vector<std::string> names = tablesOf(ReportPart::Kernels);
    if (!hasKernels(*run.timeline)) names.resize(1); // the kernels themselves
    const auto unknown = [&](const std::string& name) { return !findAnalysis(name)->unknown(run).empty(); };
    names.erase(std::remove_if(names.begin() + 1, names.end(), unknown), names.end());
    return names;
}

Json kernelsJson(const StepContext& context)
{
    Json gaps = nullptr;
    if (const auto report = analyseLaunchGaps(context); report && hasKernels(context.timeline()))
        gaps = {{"share", report->exposedShare()},
                {"late_share", report->lateShare() ? Json(*report->lateShare()) : Json(nullptr)},
                {"total_ns", report->all().exposed()},
                {"by_rank", rowsJson(reportTable(*findAnalysis("launch_gaps"), context))}};
    Json roofline = nullptr;
    const auto ceilings = ceilingsOf(context.run());
    const auto rows = rooflineOf(context);
    if (ceilings && rows) {
        roofline = Json::array();
        for (const RooflineRow& row : *rows) {
            roofline.push_back({{"op", std::string(ruleOf(row.kind).text)},
                                {"ops", row.ops},
                                {"time_ns", row.time},
                                {"flops", row.flops},
                                {"bytes", row.bytes},
                                {"flops_per_byte", row.intensity()},
                                {"flops_per_second", row.achieved()},
                                {"attainable_flops_per_second", row.attainable(*ceilings)},
                                {"share", row.share(*ceilings)}});
        }
    }
    return {{"kernels", rowsJson(reportTable(*findAnalysis("kernels"), context),
                                 {"op", "name", "class", "lane", "calls", "total_ns", "mean_ns", "spread_ns",
                                  "shortest_ns", "longest_ns"})},
            {"launch_gaps", std::move(gaps)},
            {"links", rowsJson(reportTable(*findAnalysis("links"), context))},
            {"roofline", std::move(roofline)}};
}

Json slackJson(const StepContext& context)
{
    return rowsJson(reportTable(*findAnalysis("slack"), context), {"op", "rank", "slack_ns"});
}

Json residualsJson(const StepContext& context, const Residuals& residuals)
{
    return {{"ops", rowsJson(reportTable(*findAnalysis("residuals"), context))},
            {"predicted_step_ns", residuals.predictedStep},
            {"measured_step_ns", residuals.measuredStep},
            {"steps", residuals.steps},
            {"step_error", residuals.error}};
}

} // namespace stagewright
