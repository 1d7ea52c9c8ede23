#include "schedules/survey/levels.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "schedules/library/registry.h"

namespace stagewright {

namespace {

constexpr std::size_t mostFlips = 8;
constexpr const char* levelKeys[] = {"formula", "units", "costs", "messages"};

std::size_t indexOf(TruthLevel level) { return static_cast<std::size_t>(level); }

// Schedules as fast as each other within rounding share a place.
bool before(double a, double b) { return a < b - 1e-6 * std::max(1.0, b); }

void placeRows(std::vector<LevelRow>& rows)
{
    for (std::size_t level = 0; level < truthLevelCount; ++level)
        for (LevelRow& row : rows) {
            if (!row.step[level]) continue;
            row.place[level] = 1 + static_cast<int>(std::count_if(rows.begin(), rows.end(), [&](const LevelRow& other) {
                                   return other.step[level] && before(*other.step[level], *row.step[level]);
                               }));
        }
}

// What the next level adds, and to whom.
std::string flipText(const LevelRow& a, const LevelRow& b, std::size_t level)
{
    constexpr const char* causes[] = {"", "what the formula leaves out", "the costs", "messages"};
    const auto adds = [level](const LevelRow& row) { return *row.step[level] - *row.step[level - 1]; };
    const auto changeText = [](double change) {
        return fmt::format("{} {}", change < 0 ? "take" : "add", shortNumber(std::abs(change)));
    };
    return fmt::format("{} is {} {} by {}, slower by {}: {} {} {} it and {} {} the other.", shownTitle(a.schedule),
                       before(*a.step[level - 1], *b.step[level - 1]) ? "faster than" : "as fast as",
                       shownTitle(b.schedule), lowered(titleOf(static_cast<TruthLevel>(level - 1))),
                       lowered(titleOf(static_cast<TruthLevel>(level))), causes[level], changeText(adds(a)),
                       adds(a) < 0 ? "from" : "to", changeText(adds(b)), adds(b) < 0 ? "from" : "to");
}

std::vector<std::string> flipsOf(const std::vector<LevelRow>& rows)
{
    struct Flip {
        double size;
        std::string text;
    };
    std::vector<Flip> flips;
    for (std::size_t level = 1; level < truthLevelCount; ++level)
        for (const LevelRow& a : rows)
            for (const LevelRow& b : rows) {
                if (!a.step[level - 1] || !b.step[level - 1] || !a.step[level] || !b.step[level]) continue;
                if (before(*b.step[level - 1], *a.step[level - 1]) || !before(*b.step[level], *a.step[level])) continue;
                flips.push_back({*a.step[level] - *b.step[level], flipText(a, b, level)});
            }
    std::stable_sort(flips.begin(), flips.end(), [](const Flip& a, const Flip& b) { return a.size > b.size; });
    std::vector<std::string> out;
    for (Flip& flip : flips)
        if (out.size() < mostFlips) out.push_back(std::move(flip.text));
    return out;
}

std::vector<SurveyField> levelsFields()
{
    std::vector<SurveyField> fields = parameterFields();
    std::erase_if(fields, [](const SurveyField& field) { return field.name == fieldOf(ExploreParameter::Cap).name; });
    fields.push_back(schedulesField(usualSchedules, {}));
    return fields;
}

Result<SurveyAnswer> levelsAnswer(const SurveyQuestion& asked, const Progress& progress)
{
    ExploreQuestion question;
    for (int i = 0; i < exploreParameterCount; ++i)
        if (const auto parameter = static_cast<ExploreParameter>(i); parameter != ExploreParameter::Cap)
            question = question.with(parameter, asked.real(fieldOf(parameter).name));
    STAGEWRIGHT_TRY(const auto schedules, schedulesAsked(asked, {}));
    const LevelsAnswer answer = levelsSurvey(question, schedules, progress);
    return SurveyAnswer{.setup = setupOf(question),
                        .tables = {levelsTable(answer)},
                        .units = exploreUnits,
                        .plot = levelsPlot(answer),
                        .complete = answer.complete};
}

} // namespace

std::string titleOf(TruthLevel level)
{
    constexpr const char* titles[] = {"Formula", "Unit costs", "These costs", "Messages, too"};
    return titles[indexOf(level)];
}

LevelsAnswer levelsSurvey(const ExploreQuestion& question, const std::vector<std::string>& schedules,
                          const Progress& progress)
{
    LevelsAnswer out{question, {}, {}, true};
    ExploreQuestion costs = question;
    costs.latency = 0;
    ExploreQuestion units = costs;
    units.forward = units.inputGrad = units.weightGrad = 1;
    std::vector<Setup> points;
    for (const ExploreQuestion& level : {units, costs, question})
        for (const std::string& schedule : schedules) points.push_back(level.point(schedule));
    const auto rows = sweep(points, exploreSource(), progress);
    out.complete = !progress.cancelled();
    if (!out.complete) return out;
    for (std::size_t i = 0; i < schedules.size(); ++i) {
        LevelRow row{schedules[i], {}, {}};
        // the formulas count F, I and W of a rank
        if (const auto form = closedFormOf(schedules[i], shapeOf(points[i]), 1, 1, 1); form && form->makespan >= 0)
            row.step[indexOf(TruthLevel::Formula)] = form->makespan;
        for (std::size_t level = 1; level < truthLevelCount; ++level)
            if (const SweepRow& at = rows[(level - 1) * schedules.size() + i]; at.good())
                row.step[level] = at.timeValue(at.makespan);
        out.rows.push_back(std::move(row));
    }
    placeRows(out.rows);
    out.flips = flipsOf(out.rows);
    const auto key = [](const LevelRow& row) { return row.step.back().value_or(INFINITY); };
    std::stable_sort(out.rows.begin(), out.rows.end(),
                     [&](const LevelRow& a, const LevelRow& b) { return key(a) < key(b); });
    return out;
}

SurveyTable levelsTable(const LevelsAnswer& answer)
{
    SurveyTable table{"levels", "Schedules by how much is counted", {{"schedule", "Schedule", ColumnKind::Text}}, {}};
    for (std::size_t level = 0; level < truthLevelCount; ++level) {
        const std::string title = titleOf(static_cast<TruthLevel>(level));
        table.columns.push_back({levelKeys[level], title, ColumnKind::Real, "Makespan in shares of a rank."});
        table.columns.push_back({std::string(levelKeys[level]) + "_place", "place", ColumnKind::Whole});
    }
    for (const LevelRow& row : answer.rows) {
        TableRow cells{row.schedule};
        for (std::size_t level = 0; level < truthLevelCount; ++level) {
            cells.push_back(cellOf(row.step[level]));
            cells.push_back(row.place[level] > 0 ? TableCell(std::int64_t{row.place[level]}) : TableCell());
        }
        table.rows.push_back(std::move(cells));
    }
    table.sentence = !answer.complete       ? std::string()
                     : answer.flips.empty() ? "No two schedules change places."
                                            : joined(answer.flips, " ");
    return table;
}

Plot levelsPlot(const LevelsAnswer& answer)
{
    Plot plot{"What is counted", "Place by step time", {}};
    plot.legend = PlotLegend::LineEnds;
    plot.nothing = "simulating…";
    plot.up.downwards = true;
    plot.across.least = -0.2;
    plot.across.most = 3.2;
    for (std::size_t level = 0; level < truthLevelCount; ++level)
        plot.across.names.push_back(titleOf(static_cast<TruthLevel>(level)));
    plot.up.names.emplace_back();
    for (std::size_t place = 1; place <= answer.rows.size(); ++place) plot.up.names.push_back(std::to_string(place));
    for (std::size_t i = 0; i < answer.rows.size(); ++i) {
        const LevelRow& row = answer.rows[i];
        PlotSeries line{shownTitle(row.schedule), {}};
        line.dots = true;
        line.size = 1.75;
        for (std::size_t level = 0; level < truthLevelCount; ++level) {
            if (row.place[level] == 0) continue;
            const auto x = static_cast<double>(level), y = static_cast<double>(row.place[level]);
            line.points.push_back({x, y});
            plot.items.push_back(PlotItem::at(x, y,
                                              fmt::format("{}, {}: {} at place {}", line.title,
                                                          lowered(titleOf(static_cast<TruthLevel>(level))),
                                                          shortNumber(*row.step[level]), row.place[level]),
                                              static_cast<int>(level), static_cast<int>(i), static_cast<int>(i)));
        }
        plot.series.push_back(std::move(line));
    }
    return plot;
}

namespace surveys {
extern const SurveyInfo levels;
const SurveyInfo levels{"levels", "How much is counted",
                        "the order of schedules by formula, unit costs, these costs and with messages", levelsFields,
                        levelsAnswer};
} // namespace surveys

} // namespace stagewright
