#include "schedules/survey/memory.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace stagewright {

namespace {

std::vector<SurveyField> memoryFields()
{
    std::vector<SurveyField> fields = parameterFields();
    fields.push_back(measureField());
    return fields;
}

SurveyTable boundTable(const std::vector<ExploreBound>& bounds)
{
    SurveyTable table{"bounds",
                      "Proven bounds for whole ops",
                      {{"chunks", "Stages per rank", ColumnKind::Whole, "One, or two in V placement."},
                       {"cap", "Cap", ColumnKind::Size, "Activations a rank may hold, as the peak counts them."},
                       {"makespan", "Step time", ColumnKind::Time, "No order within the cap is shorter; in units."},
                       {"proven_by", "Proven by", ColumnKind::Text}},
                      {}};
    for (const ExploreBound& bound : bounds)
        table.rows.push_back({std::int64_t{bound.chunks}, std::int64_t{std::llround(bound.cap * activationShare)},
                              std::int64_t{std::llround(bound.makespan * rankShare)}, bound.by});
    return table;
}

Plot memoryPlot(const std::vector<SweepRow>& rows, const std::vector<ExploreBound>& bounds,
                const ExploreQuestion& question, ExploreMeasure measure)
{
    Plot plot{"Largest activation peak of a rank, microbatches on 1/p of the model", titleOf(measure), {}};
    const auto pointOf = [measure](const SweepRow& row) {
        return PlotPoint{row.memoryValue(row.peak()), measureOf(row, measure), row.schedule()};
    };
    double longest = 0; // bounds far above every schedule are left out
    for (const SweepRow& row : rows)
        if (row.good()) longest = std::max(longest, row.timeValue(row.step));
    if (measure == ExploreMeasure::StepTime)
        for (const int chunks : {1, 2}) {
            PlotSeries line{chunks == 1 ? "proven bound, one stage per rank" : "for V placement", {}, PlotMark::Steps};
            for (const ExploreBound& bound : bounds)
                if (bound.chunks == chunks && bound.makespan <= longest)
                    line.points.push_back({bound.cap, bound.makespan});
            if (!line.points.empty()) plot.series.push_back(std::move(line));
        }
    PlotSeries frontier{"frontier", {}, PlotMark::Steps};
    for (const std::size_t row : memoryFrontier(rows, question)) {
        frontier.points.push_back(pointOf(rows[row]));
        frontier.points.back().name.clear();
    }
    if (!frontier.points.empty()) plot.series.push_back(std::move(frontier));
    PlotSeries inside{"schedule", {}, PlotMark::Points}, over{"over the cap", {}, PlotMark::Points},
        stale{"stale weights", {}, PlotMark::Points};
    for (const SweepRow& row : rows)
        if (row.good())
            (!overCap(row, question).empty() ? over : row.synchronous ? inside : stale).points.push_back(pointOf(row));
    for (PlotSeries* one : {&inside, &over, &stale})
        if (!one->points.empty()) plot.series.push_back(std::move(*one));
    return plot;
}

Result<SurveyAnswer> memoryAnswer(const SurveyQuestion& asked, const Progress& progress)
{
    const ExploreQuestion question = ExploreQuestion::of(asked);
    const std::vector<SweepRow> rows = sweep(memoryPoints(question), exploreSource(), progress);
    const std::vector<ExploreBound> bounds = boundsOf(question, progress);
    return SurveyAnswer{.setup = setupOf(question),
                        .tables = {memoryTable(rows, question), boundTable(bounds)},
                        .units = exploreUnits,
                        .plot = memoryPlot(rows, bounds, question, measureAsked(asked)),
                        .complete = !progress.cancelled()};
}

} // namespace

std::vector<Setup> memoryPoints(const ExploreQuestion& question)
{
    std::vector<Setup> points;
    for (const std::string& name : exploredSchedules()) points.push_back(question.point(name));
    return points;
}

std::vector<std::size_t> memoryFrontier(const std::vector<SweepRow>& rows, const ExploreQuestion& question)
{
    return frontierOf(rows,
                      [&question](const SweepRow& row) { return row.synchronous && overCap(row, question).empty(); });
}

SurveyTable memoryTable(const std::vector<SweepRow>& rows, const ExploreQuestion& question)
{
    SurveyTable table{"schedules", "Schedules by activation peak and step time", figureColumns(), {}};
    table.columns.insert(table.columns.begin(),
                         {"schedule", "Schedule", ColumnKind::Text, "With parameters that differ from the defaults."});
    table.columns.insert(table.columns.end() - 1,
                         {"frontier", "Frontier", ColumnKind::Text, "No schedule this fast needs less memory."});
    const std::vector<std::size_t> frontier = memoryFrontier(rows, question);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (!rows[i].done) continue;
        TableRow cells{rows[i].schedule()};
        addFigures(cells, rows[i], question);
        const bool on = std::find(frontier.begin(), frontier.end(), i) != frontier.end();
        cells.insert(cells.end() - 1, TableCell(std::string(on ? "yes" : rows[i].good() ? "no" : "")));
        table.rows.push_back(std::move(cells));
    }
    table.sentence = fmt::format("The work alone takes {} units.", shortNumber(workBound(question)));
    return table;
}

namespace surveys {
extern const SurveyInfo memory;
const SurveyInfo memory{"memory", "Memory against time",
                        "every schedule of the library by activation peak and step time, the frontier, proven bounds",
                        memoryFields, memoryAnswer};
} // namespace surveys

} // namespace stagewright
