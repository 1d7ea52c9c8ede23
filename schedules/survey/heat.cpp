#include "schedules/survey/heat.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "schedules/library/registry.h"

namespace stagewright {

HeatPicture heatOf(const ExploreQuestion& question, ExploreParameter across, ExploreParameter up,
                   std::vector<std::string> schedules)
{
    HeatPicture picture{
        question, across, up, valuesAround(question, across, 14), valuesAround(question, up, 10), std::move(schedules),
        {}};
    picture.rows.resize(picture.cells() * picture.schedules.size());
    return picture;
}

ExploreQuestion HeatPicture::questionOf(std::size_t cell) const
{
    return question.with(up, valuesUp[cell / valuesAcross.size()])
        .with(across, valuesAcross[cell % valuesAcross.size()]);
}

bool HeatPicture::done(std::size_t cell) const
{
    for (std::size_t i = 0; i < schedules.size(); ++i)
        if (!row(cell, i).done) return false;
    return !schedules.empty();
}

int HeatPicture::winner(std::size_t cell) const
{
    int best = -1;
    const ExploreQuestion asked = questionOf(cell);
    for (std::size_t i = 0; i < schedules.size(); ++i) {
        const SweepRow& one = row(cell, i);
        if (!one.good() || !one.synchronous || !overCap(one, asked).empty()) continue;
        if (best < 0 || one.step < row(cell, static_cast<std::size_t>(best)).step) best = static_cast<int>(i);
    }
    return best;
}

std::vector<Setup> pointsOf(const HeatPicture& picture)
{
    std::vector<Setup> points;
    for (std::size_t cell = 0; cell < picture.cells(); ++cell)
        for (const std::string& schedule : picture.schedules)
            points.push_back(picture.questionOf(cell).point(schedule));
    return points;
}

SurveyTable heatTable(const HeatPicture& picture)
{
    const SurveyField &across = fieldOf(picture.across), &up = fieldOf(picture.up);
    SurveyTable table{
        "cells", "Shortest step over " + lowered(across.title) + " and " + lowered(up.title), figureColumns(), {}};
    table.columns.insert(table.columns.begin(),
                         {parameterColumn(picture.across),
                          parameterColumn(picture.up),
                          {"schedule", "Schedule", ColumnKind::Text,
                           "With the shortest step within the cap, the first of equals; schedules with stale weights "
                           "are excluded."}});
    for (std::size_t cell = 0; cell < picture.cells(); ++cell) {
        if (!picture.done(cell)) continue;
        const ExploreQuestion asked = picture.questionOf(cell);
        TableRow cells{parameterCell(picture.across, asked.value(picture.across)),
                       parameterCell(picture.up, asked.value(picture.up))};
        if (const int best = picture.winner(cell); best >= 0) {
            cells.emplace_back(picture.schedules[static_cast<std::size_t>(best)]);
            addFigures(cells, picture.row(cell, static_cast<std::size_t>(best)), asked);
        } else {
            cells.resize(table.columns.size() - 1);
            cells.emplace_back("no schedule is possible within the cap");
        }
        table.rows.push_back(std::move(cells));
    }
    return table;
}

namespace {

std::vector<SurveyField> heatFields()
{
    std::vector<SurveyField> fields = parameterFields();
    fields.push_back(schedulesField(usualSchedules, {}));
    fields.push_back(parameterField("across", "Parameter across", "microbatches"));
    fields.push_back(parameterField("up", "Parameter up", "latency"));
    return fields;
}

// The question and the five shortest steps of a cell.
std::string textOf(const HeatPicture& picture, std::size_t cell)
{
    const ExploreQuestion asked = picture.questionOf(cell);
    std::string text = asked.text();
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < picture.schedules.size(); ++i)
        if (picture.row(cell, i).good()) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return picture.row(cell, a).step < picture.row(cell, b).step;
    });
    if (order.size() > 5) order.resize(5);
    for (const std::size_t i : order) {
        const SweepRow& row = picture.row(cell, i);
        text += fmt::format("\n{}: {}, bubble {}, peak {}", shownTitle(picture.schedules[i]),
                            shortNumber(row.timeValue(row.step)), formatPercent(row.bubbleFraction),
                            shortNumber(row.memoryValue(row.peak())));
        if (const std::string over = overCap(row, asked); !over.empty())
            text += fmt::format(" ({})", over);
        else if (!row.synchronous)
            text += " (stale weights)";
    }
    return text;
}

// A series for each schedule that wins somewhere, titled "a 1F1B".
std::vector<PlotSeries> winnersOf(const HeatPicture& picture)
{
    std::vector<PlotSeries> series;
    for (const std::string& schedule : picture.schedules) series.push_back({shownTitle(schedule), {}, PlotMark::Cells});
    for (std::size_t cell = 0; cell < picture.cells(); ++cell)
        if (const int best = picture.done(cell) ? picture.winner(cell) : -1; best >= 0)
            series[static_cast<std::size_t>(best)].points.push_back({picture.column(cell), picture.line(cell)});
    std::erase_if(series, [](const PlotSeries& one) { return one.points.empty(); });
    std::stable_sort(series.begin(), series.end(),
                     [](const PlotSeries& a, const PlotSeries& b) { return a.points.size() > b.points.size(); });
    for (std::size_t i = 0; i < series.size(); ++i) {
        series[i].ink = seriesInk(i);
        for (PlotPoint& point : series[i].points) point.name = std::string(1, static_cast<char>('a' + i % 26));
    }
    return series;
}

// One series of cells from pale to dark, and two for the ends of the scale.
std::vector<PlotSeries> valuesOf(const HeatPicture& picture, ExploreMeasure measure)
{
    PlotSeries cells{"", {}, PlotMark::Cells};
    std::vector<double> values;
    for (std::size_t cell = 0; cell < picture.cells(); ++cell)
        if (const int best = picture.done(cell) ? picture.winner(cell) : -1; best >= 0) {
            values.push_back(measureOf(picture.row(cell, static_cast<std::size_t>(best)), measure));
            cells.points.push_back({picture.column(cell), picture.line(cell),
                                    measure == ExploreMeasure::StepTime ? fixedNumber(values.back(), 1)
                                                                        : fixedNumber(100 * values.back(), 1)});
        }
    if (values.empty()) return {};
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    const auto inkOf = [least = *least, most = *most](double value) {
        return PlotInk{PlotHue::Accent,
                       static_cast<float>(most > least ? 0.08 + 0.85 * (value - least) / (most - least) : 0.5)};
    };
    for (std::size_t i = 0; i < values.size(); ++i) cells.points[i].ink = inkOf(values[i]);
    std::vector<PlotSeries> series{std::move(cells)};
    for (const auto& [word, value] : {std::pair("least", *least), std::pair("most", *most)})
        series.push_back({fmt::format("{} {}", word, measureText(value, measure)), {}, PlotMark::Cells, inkOf(value)});
    return series;
}

Result<SurveyAnswer> heatAnswer(const SurveyQuestion& asked, const Progress& progress)
{
    const ExploreQuestion question = ExploreQuestion::of(asked);
    STAGEWRIGHT_TRY(auto schedules, schedulesAsked(asked, {}));
    const auto across = parameterOf(asked.text("across")), up = parameterOf(asked.text("up"));
    if (across == up) return fail(ErrorCode::Usage, "across and up are the same parameter", "take two different ones");
    HeatPicture picture = heatOf(question, *across, *up, std::move(schedules));
    picture.rows = sweep(pointsOf(picture), exploreSource(), progress);
    return SurveyAnswer{.setup = setupOf(question),
                        .tables = {heatTable(picture)},
                        .units = exploreUnits,
                        .plot = heatPlot(picture, ExploreMeasure::StepTime, HeatShows::Winner),
                        .complete = !progress.cancelled()};
}

} // namespace

Plot heatPlot(const HeatPicture& picture, ExploreMeasure measure, HeatShows shows)
{
    Plot plot{fieldOf(picture.across).title, {}, {}};
    plot.up.title = fmt::format("{}: {}", fieldOf(picture.up).title,
                                shows == HeatShows::Winner ? "shortest step within the cap"
                                                           : titleOf(measure) + " of the shortest step");
    for (const double value : picture.valuesAcross) plot.across.names.push_back(valueText(picture.across, value));
    for (const double value : picture.valuesUp) plot.up.names.push_back(valueText(picture.up, value));
    plot.legend = PlotLegend::Right;
    plot.nothing = "tick schedules in the table";
    if (picture.schedules.empty()) return plot;
    plot.series = shows == HeatShows::Winner ? winnersOf(picture) : valuesOf(picture, measure);
    PlotSeries none{"", {}, PlotMark::Cells, PlotInk{PlotHue::Idle}};
    for (std::size_t cell = 0; cell < picture.cells(); ++cell) {
        const bool done = picture.done(cell);
        if (!done || picture.winner(cell) < 0)
            none.points.push_back({picture.column(cell), picture.line(cell), done ? "–" : ""});
        plot.items.push_back(PlotItem::cell(static_cast<int>(picture.column(cell)),
                                            static_cast<int>(picture.line(cell)), textOf(picture, cell),
                                            static_cast<int>(cell)));
    }
    plot.series.push_back(std::move(none));
    return plot;
}

namespace surveys {
extern const SurveyInfo heat;
const SurveyInfo heat{"heat", "Over two parameters", "the schedule with the shortest step within the cap, cell by cell",
                      heatFields, heatAnswer};
} // namespace surveys

} // namespace stagewright
