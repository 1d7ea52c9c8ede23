#include "traces/report/table_document.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/model/kinds.h"
#include "traces/analysis/kernels.h"
#include "traces/analysis/launch_gaps.h"
#include "traces/analysis/roofline.h"
#include "traces/report/table_curves.h"

namespace stagewright::document {

namespace {

std::string under(const std::string& place, const std::string& key) // what has no place has none in it
{
    return place.empty() ? place : place + key;
}

Table rowsOf(const std::vector<TableColumn>& columns, std::vector<TableRow> rows, const std::vector<SpanId>& ops,
             const std::string& place, const Units& dataUnits)
{
    Table out{under(place, ".#"), {}};
    out.dataUnits = dataUnits;
    for (const TableColumn& column : columns) {
        out.columns.emplace_back(column);
        out.columns.back().brief = column.kind == ColumnKind::Text;
        out.columns.back().sparse = column.key == "gpu"; // of a rank with several
    }
    out.rows.reserve(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        out.rows.push_back({std::move(rows[i])});
        if (!ops.empty()) out.rows.back().op = ops[i];
    }
    return out;
}

// Title, columns, rows, sentence and the reason why there are none.
Section described(const std::string& title, const std::vector<TableColumn>& columns, Table rows,
                  const std::string& sentence, const std::string& place)
{
    Section section{title};
    section.fact(under(place, ".title"), title);
    Table heads = dataTable(under(place, ".columns.#"), "key title unit");
    for (const TableColumn& column : columns) {
        std::string unit(column.unit());
        if (column.kind == ColumnKind::Time) unit = rows.dataUnits->timeName();
        if (column.kind == ColumnKind::Size && rows.dataUnits->memory != 1) unit = "microbatches";
        heads.add({column.key, column.title, textCell(std::move(unit))});
    }
    section.add(std::move(heads));
    section.fact(under(place, ".unknown"), rows.unknown);
    const bool empty = rows.unknown.empty() && rows.rows.empty();
    section.add(std::move(rows));
    Sentences& below = section.add(Sentences{under(place, ".sentence"), {}});
    if (!sentence.empty()) below.lines.push_back(sentence);
    if (empty && sentence.empty()) section.say("no rows");
    return section;
}

ReportTable reportTable(const char* analysis, const StepContext& context)
{
    return stagewright::reportTable(*findAnalysis(analysis), context);
}

// Rows in JSON only; keys: these columns, empty: all.
Table dataRows(ReportTable table, const std::string& place, const std::vector<std::string_view>& keys = {})
{
    Table out = rowsOf(table.columns, std::move(table.rows), {}, place, {});
    out.shown = false;
    for (Column& column : out.columns)
        if (!keys.empty() && std::find(keys.begin(), keys.end(), column.key) == keys.end()) column.key.clear();
    return out;
}

} // namespace

} // namespace stagewright::document

namespace stagewright {

document::Section tableSection(ReportTable table, const std::string& place, std::size_t mostShown)
{
    using namespace document;
    Plot curves = table.analysis->curves.up.empty() ? Plot() : curvesOf(table);
    Table rows = rowsOf(table.columns, std::move(table.rows), table.ops, under(place, ".rows"), {});
    rows.unknown = table.unknown;
    rows.mostShown = mostShown;
    Section section =
        described(std::string(table.analysis->title), table.columns, std::move(rows), table.sentence, place);
    for (auto figure = table.figures.rbegin(); figure != table.figures.rend(); ++figure) {
        Figure one = *figure;
        one.key = under(place, ".figures." + one.key);
        section.elements.insert(section.elements.begin(), std::move(one));
    }
    if (!table.analysis->curves.up.empty())
        section.add(Chart{under(place, ".plot"), std::string(table.analysis->title), std::move(curves)});
    if (const Marks& marks = table.marks; !marks.empty()) section.add(marks).place = under(place, ".marks");
    return section;
}

document::Section tableSection(const SurveyTable& table, const std::string& place, const Units& units)
{
    using namespace document;
    return described(table.title, table.columns, rowsOf(table.columns, table.rows, {}, under(place, ".rows"), units),
                     table.sentence, place);
}

document::Section totalsSection(const ReportTable& table)
{
    using namespace document;
    Section section{std::string(table.analysis->title)};
    double whole = 0;
    for (std::size_t c = 0; table.unknown.empty() && c < table.columns.size(); ++c) {
        const TableColumn& column = table.columns[c];
        if (column.kind != ColumnKind::Time && whole > 0) break; // what is behind does not add up
        if (column.kind != ColumnKind::Time) continue;
        Figure sum{under(std::string(table.analysis->name), "." + column.key), column.title, ColumnKind::Time};
        sum.meaning = column.meaning;
        for (const TableRow& row : table.rows) {
            const auto* time = std::get_if<std::int64_t>(&row[c]);
            if (time != nullptr)
                sum.value += static_cast<double>(*time);
            else
                sum.unknown = "it is not known of every rank";
        }
        if (whole == 0) {
            whole = sum.value;
            if (table.rows.size() > 1) sum.note = fmt::format("summed over {} devices", table.rows.size());
        } else if (sum.unknown.empty()) {
            sum.note = formatPercent(sum.value / whole);
        }
        if (!sum.unknown.empty() || sum.value * 200 >= whole) section.add(std::move(sum));
    }
    return section;
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
    using namespace document;
    std::vector<std::string> names = tablesOf(ReportPart::Kernels);
    if (!hasKernels(*run.timeline)) names.resize(1); // the kernels themselves
    const auto unknown = [&](const std::string& name) { return !findAnalysis(name)->unknown(run).empty(); };
    names.erase(std::remove_if(names.begin() + 1, names.end(), unknown), names.end());
    return names;
}

document::Section kernelsSection(const StepContext& context, const std::string& place)
{
    using namespace document;
    Section section;
    section.add(dataRows(
        reportTable("kernels", context), place + ".kernels",
        {"op", "name", "class", "lane", "calls", "total_ns", "mean_ns", "spread_ns", "shortest_ns", "longest_ns"}));
    const std::string launches = place + ".launch_gaps";
    if (const auto gaps = analyseLaunchGaps(context); gaps && hasKernels(context.timeline())) {
        section.fact(launches + ".share", ColumnKind::Share, gaps->exposedShare());
        section.fact(launches + ".late_share", ColumnKind::Share, gaps->lateShare());
        section.fact(launches + ".total_ns", ColumnKind::Count, static_cast<double>(gaps->all().exposed()));
        section.add(dataRows(reportTable("launch_gaps", context), launches + ".by_rank"));
    } else {
        section.fact(launches, std::string());
    }
    section.add(dataRows(reportTable("links", context), place + ".links"));
    Table roofline =
        dataTable(place + ".roofline.#",
                  "op ops time_ns flops bytes flops_per_byte flops_per_second attainable_flops_per_second share");
    const auto ceilings = ceilingsOf(context.run());
    const auto rows = rooflineOf(context);
    if (!ceilings || !rows) roofline.unknown = (ceilings ? rows.error() : ceilings.error()).message;
    if (ceilings && rows)
        for (const RooflineRow& row : *rows)
            roofline.rows.push_back(
                {{std::string(ruleOf(row.kind).text), std::int64_t(row.ops), row.time, row.flops, row.bytes,
                  row.intensity(), row.achieved(), row.attainable(*ceilings), row.share(*ceilings)}});
    section.add(std::move(roofline));
    return section;
}

document::Section slackSection(const StepContext& context, const std::string& place)
{
    using namespace document;
    Section section;
    section.add(dataRows(reportTable("slack", context), place, {"op", "rank", "slack_ns"}));
    return section;
}

document::Section residualsSection(const StepContext& context, const Residuals& residuals, const std::string& place)
{
    using namespace document;
    Section section;
    section.add(dataRows(reportTable("residuals", context), place + ".ops"));
    section.fact(place + ".predicted_step_ns", ColumnKind::Count, static_cast<double>(residuals.predictedStep));
    section.fact(place + ".measured_step_ns", ColumnKind::Count, static_cast<double>(residuals.measuredStep));
    section.fact(place + ".steps", ColumnKind::Count, residuals.steps);
    section.fact(place + ".step_error", ColumnKind::Real, residuals.error);
    return section;
}

} // namespace stagewright
