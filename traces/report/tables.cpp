#include "traces/report/tables.h"

#include <fmt/format.h>

namespace stagewright {

ReportTable reportTable(const AnalysisInfo& analysis, const StepContext& context)
{
    ReportTable table;
    table.analysis = &analysis;
    table.columns = analysis.columns();
    table.unknown = analysis.unknown(context.run());
    if (!table.unknown.empty()) return table;
    auto rows = analysis.rows(context);
    if (rows)
        static_cast<AnalysisRows&>(table) = std::move(*rows);
    else
        table.unknown = rows.error().message;
    return table;
}

std::vector<ReportTable> reportTables(const StepContext& context)
{
    std::vector<ReportTable> tables;
    for (const AnalysisInfo* analysis : allAnalyses())
        if (!context.stop().stop_requested()) tables.push_back(reportTable(*analysis, context));
    return tables;
}

std::string reportFunction(const AnalysisInfo& analysis) { return fmt::format("report_{}", analysis.name); }

} // namespace stagewright
