#include "schedules/survey/line.h"

#include <cmath>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "schedules/library/registry.h"

namespace stagewright {

LinesPicture linesOf(const ExploreQuestion& question, ExploreParameter across, std::vector<std::string> schedules)
{
    LinesPicture picture{question, across, valuesAround(question, across, 16), std::move(schedules), {}};
    picture.rows.resize(picture.values.size() * picture.schedules.size());
    return picture;
}

std::vector<Setup> pointsOf(const LinesPicture& picture)
{
    std::vector<Setup> points;
    for (const std::string& schedule : picture.schedules)
        for (const double value : picture.values)
            points.push_back(picture.question.with(picture.across, value).point(schedule));
    return points;
}

SurveyTable lineTable(const LinesPicture& picture)
{
    const SurveyField& across = fieldOf(picture.across);
    SurveyTable table{"points", "Schedules over " + lowered(across.title), figureColumns(), {}};
    table.columns.insert(table.columns.begin(),
                         {{"schedule", "Schedule", ColumnKind::Text}, parameterColumn(picture.across)});
    for (std::size_t i = 0; i < picture.schedules.size(); ++i)
        for (std::size_t k = 0; k < picture.values.size(); ++k) {
            const SweepRow& row = picture.row(i, k);
            if (!row.done) continue;
            TableRow cells{picture.schedules[i], parameterCell(picture.across, picture.values[k])};
            addFigures(cells, row, picture.question.with(picture.across, picture.values[k]));
            table.rows.push_back(std::move(cells));
        }
    return table;
}

Plot linePlot(const LinesPicture& picture, ExploreMeasure measure)
{
    constexpr PlotDash dashes[] = {PlotDash::Solid, PlotDash::Dash, PlotDash::DashDot, PlotDash::Dot};
    Plot plot{fieldOf(picture.across).title, titleOf(measure), {}};
    plot.legend = PlotLegend::LineEnds;
    plot.nothing = "tick schedules in the table";
    plot.up.least = 0;
    if (measure != ExploreMeasure::StepTime) plot.up.scale = PlotScale::Share;
    for (std::size_t i = 0; i < picture.schedules.size(); ++i) {
        PlotSeries line{shownTitle(picture.schedules[i]), {}};
        line.dash = dashes[i / 2 % std::size(dashes)];
        line.size = 1.75;
        line.dots = true;
        for (std::size_t k = 0; k < picture.values.size(); ++k) {
            const SweepRow& row = picture.row(i, k);
            const double x = picture.values[k], y = row.good() ? measureOf(row, measure) : std::nan("");
            PlotPoint point{x, y};
            if (row.good() && !overCap(row, picture.question.with(picture.across, x)).empty())
                point.shape = PlotShape::Ring;
            line.points.push_back(std::move(point));
            if (!row.good()) continue; // an unsupported shape interrupts the line
            plot.items.push_back(PlotItem::at(
                x, y,
                fmt::format("{} at {}: {}, peak {}", line.title, valueText(picture.across, x), measureText(y, measure),
                            fixedNumber(row.memoryValue(row.peak()), 1)),
                static_cast<int>(k), static_cast<int>(i), static_cast<int>(i * picture.values.size() + k)));
            plot.up.least = std::min(*plot.up.least, y);
        }
        plot.series.push_back(std::move(line));
    }
    if (plot.items.empty() && !picture.schedules.empty()) plot.nothing = "simulating…";
    return plot;
}

namespace {

std::vector<SurveyField> lineFields()
{
    std::vector<SurveyField> fields = parameterFields();
    fields.push_back(schedulesField(usualSchedules, {}));
    fields.push_back(parameterField("across", "Parameter across", "microbatches"));
    fields.push_back(measureField());
    return fields;
}

Result<SurveyAnswer> lineAnswer(const SurveyQuestion& asked, const Progress& progress)
{
    const ExploreQuestion question = ExploreQuestion::of(asked);
    STAGEWRIGHT_TRY(auto schedules, schedulesAsked(asked, {}));
    LinesPicture picture = linesOf(question, *parameterOf(asked.text("across")), std::move(schedules));
    picture.rows = sweep(pointsOf(picture), exploreSource(), progress);
    return SurveyAnswer{.setup = setupOf(question),
                        .tables = {lineTable(picture)},
                        .units = exploreUnits,
                        .plot = linePlot(picture, measureAsked(asked)),
                        .complete = !progress.cancelled()};
}

} // namespace

namespace surveys {
extern const SurveyInfo line;
const SurveyInfo line{"line", "Over one parameter", "some schedules while one parameter varies", lineFields,
                      lineAnswer};
} // namespace surveys

} // namespace stagewright
