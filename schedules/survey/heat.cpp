#include "schedules/survey/heat.h"

#include "schedules/base/text.h"

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

// A letter and a colour for each schedule that wins somewhere, the most frequent first.
Plot heatPlot(const HeatPicture& picture)
{
    Plot plot{fieldOf(picture.across).title, fieldOf(picture.up).title, {}};
    for (const double value : picture.valuesAcross) plot.acrossNames.push_back(valueText(picture.across, value));
    for (const double value : picture.valuesUp) plot.upNames.push_back(valueText(picture.up, value));
    for (const std::string& schedule : picture.schedules) plot.series.push_back({schedule, {}, PlotMark::Cells});
    for (std::size_t cell = 0; cell < picture.cells(); ++cell)
        if (const int best = picture.done(cell) ? picture.winner(cell) : -1; best >= 0)
            plot.series[static_cast<std::size_t>(best)].points.push_back(
                {static_cast<double>(cell % picture.valuesAcross.size()),
                 static_cast<double>(cell / picture.valuesAcross.size())});
    std::erase_if(plot.series, [](const PlotSeries& one) { return one.points.empty(); });
    std::stable_sort(plot.series.begin(), plot.series.end(),
                     [](const PlotSeries& a, const PlotSeries& b) { return a.points.size() > b.points.size(); });
    char letter = 'a';
    for (PlotSeries& one : plot.series) {
        for (PlotPoint& point : one.points) point.name = std::string(1, letter);
        one.title = std::string(1, letter) + " " + one.title;
        letter = letter == 'z' ? 'a' : static_cast<char>(letter + 1);
    }
    return plot;
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
                        .plot = heatPlot(picture),
                        .complete = !progress.cancelled()};
}

} // namespace

namespace surveys {
extern const SurveyInfo heat;
const SurveyInfo heat{"heat", "Over two parameters", "the schedule with the shortest step within the cap, cell by cell",
                      heatFields, heatAnswer};
} // namespace surveys

} // namespace stagewright
