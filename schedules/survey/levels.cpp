#include "schedules/survey/levels.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "schedules/base/text.h"
#include "schedules/library/registry.h"

namespace stagewright {

namespace {

constexpr std::size_t mostFlips = 8;
constexpr const char* levelKeys[] = {"formula", "units", "costs", "messages", "measured"};

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
    constexpr const char* places[] = {"by formula", "at unit costs", "with these costs", "with messages",
                                      "as measured"};
    constexpr const char* causes[] = {"", "What the formula leaves out", "The costs", "Messages",
                                      "What the simulation leaves out"};
    const auto change = [level](const LevelRow& row) { return *row.step[level] - *row.step[level - 1]; };
    const double ofOne = change(a), ofOther = change(b);
    const std::string one = shownTitle(a.schedule), other = shownTitle(b.schedule);
    const char* ending = std::string_view(causes[level]).starts_with("What") ? "s" : ""; // one thing, not many
    const auto verb = [ending](double by) { return fmt::format("{}{}", by < 0 ? "take" : "add", ending); };
    const auto to = [](double by, const std::string& whom) {
        return fmt::format("{} {} {}", shortNumber(std::abs(by)), by < 0 ? "from" : "to", whom);
    };
    return fmt::format("{} is {} {} {} and slower by {} {}. {} {} {} and {}{}.", one,
                       before(*a.step[level - 1], *b.step[level - 1]) ? "faster than" : "as fast as", other,
                       places[level - 1], shortNumber(*a.step[level] - *b.step[level]), places[level], causes[level],
                       verb(ofOne), to(ofOne, one), (ofOne < 0) == (ofOther < 0) ? "" : verb(ofOther) + " ",
                       to(ofOther, other));
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

// How far each level is from what was measured.
std::string distancesText(const LevelsAnswer& answer)
{
    std::string out;
    for (std::size_t level = 0; level + 1 < truthLevelCount; ++level) {
        double sum = 0, largest = 0;
        int count = 0;
        const LevelRow* worst = nullptr;
        for (const LevelRow& row : answer.rows) {
            if (!row.step[level] || !row.step.back()) continue;
            const double away = *row.step[level] / *row.step.back() - 1;
            sum += std::abs(away);
            ++count;
            if (worst == nullptr || std::abs(away) > std::abs(largest)) largest = away, worst = &row;
        }
        if (worst == nullptr) continue;
        out += fmt::format(" {}: {} from the measured steps on average, {} of {} at most.",
                           titleOf(static_cast<TruthLevel>(level)), formatPercent(sum / count), formatChange(largest),
                           shownTitle(worst->schedule));
    }
    return out;
}

std::vector<SurveyField> levelsFields()
{
    std::vector<SurveyField> fields = parameterFields();
    std::erase_if(fields, [](const SurveyField& field) { return field.name == fieldOf(ExploreParameter::Cap).name; });
    fields.push_back(schedulesField(usualSchedules, {}));
    fields.push_back(
        {.name = "measured",
         .title = "Measured steps",
         .help = "What schedules took, in rank shares: 1f1b=61.2,gpipe=64. On the command line also a run file: "
                 "its runs give them, and the shape and costs that are not given.",
         .kind = FieldKind::Text,
         .none = "none"});
    return fields;
}

Result<SurveyAnswer> levelsAnswer(const SurveyQuestion& asked, const Progress& progress)
{
    const ExploreQuestion question = ExploreQuestion::of(asked);
    STAGEWRIGHT_TRY(const auto schedules, schedulesAsked(asked, {}));
    std::map<std::string, double> measured;
    if (asked.text("measured") != "none")
        for (const std::string_view item : itemsOf(asked.text("measured"))) {
            const auto [name, value] = keyValueOf(item);
            const auto number = numberOf(value.value_or(""));
            if (!number || *number <= 0)
                return fail(ErrorCode::Usage, fmt::format("measured takes SCHEDULE=STEP, not '{}'", item),
                            "write 1f1b=61.2,gpipe=64, in rank shares");
            measured[std::string(name)] = *number;
        }
    std::vector<std::string> all = schedules;
    for (const auto& [name, step] : measured) {
        STAGEWRIGHT_CHECK(findSchedule(name));
        if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
    }
    const LevelsAnswer answer = levelsSurvey(question, all, progress, measured);
    return SurveyAnswer{.setup = setupOf(question),
                        .tables = {levelsTable(answer)},
                        .units = exploreUnits,
                        .plot = levelsPlot(answer),
                        .complete = answer.complete};
}

} // namespace

std::string titleOf(TruthLevel level)
{
    constexpr const char* titles[] = {"Formula", "Unit costs", "These costs", "Messages, too", "Measured"};
    return titles[indexOf(level)];
}

bool LevelsAnswer::measured() const
{
    return std::any_of(rows.begin(), rows.end(), [](const LevelRow& row) { return row.step.back().has_value(); });
}

LevelsAnswer levelsSurvey(const ExploreQuestion& question, const std::vector<std::string>& schedules,
                          const Progress& progress, const std::map<std::string, double>& measured)
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
        if (const auto found = measured.find(schedules[i]); found != measured.end()) row.step.back() = found->second;
        for (std::size_t level = 1; level <= indexOf(TruthLevel::Messages); ++level)
            if (const SweepRow& at = rows[(level - 1) * schedules.size() + i]; at.good())
                row.step[level] = at.timeValue(at.makespan);
        out.rows.push_back(std::move(row));
    }
    placeRows(out.rows);
    out.flips = flipsOf(out.rows);
    const auto key = [](const LevelRow& row) {
        return row.step.back().value_or(row.step[indexOf(TruthLevel::Messages)].value_or(INFINITY));
    };
    std::stable_sort(out.rows.begin(), out.rows.end(),
                     [&](const LevelRow& a, const LevelRow& b) { return key(a) < key(b); });
    return out;
}

SurveyTable levelsTable(const LevelsAnswer& answer)
{
    SurveyTable table{"levels", "Schedules by how much is counted", {{"schedule", "Schedule", ColumnKind::Text}}, {}};
    const std::size_t levels = truthLevelCount - (answer.measured() ? 0 : 1);
    for (std::size_t level = 0; level < levels; ++level) {
        const std::string title = titleOf(static_cast<TruthLevel>(level));
        table.columns.push_back({levelKeys[level], title, ColumnKind::Real, "Makespan in shares of a rank."});
        table.columns.push_back({std::string(levelKeys[level]) + "_place", "place", ColumnKind::Whole});
    }
    for (const LevelRow& row : answer.rows) {
        TableRow cells{row.schedule};
        for (std::size_t level = 0; level < levels; ++level) {
            cells.push_back(cellOf(row.step[level]));
            cells.push_back(row.place[level] > 0 ? TableCell(std::int64_t{row.place[level]}) : TableCell());
        }
        table.rows.push_back(std::move(cells));
    }
    table.sentence = !answer.complete       ? std::string()
                     : answer.flips.empty() ? "No two schedules change places."
                                            : joined(answer.flips, " ");
    if (answer.complete && answer.measured()) table.sentence += distancesText(answer);
    return table;
}

Plot levelsPlot(const LevelsAnswer& answer)
{
    Plot plot{"What is counted", "Place by step time", {}};
    plot.legend = PlotLegend::LineEnds;
    plot.nothing = "simulating…";
    plot.up.downwards = true;
    plot.across.least = -0.2;
    const std::size_t levels = truthLevelCount - (answer.measured() ? 0 : 1);
    plot.across.most = static_cast<double>(levels) - 0.8;
    for (std::size_t level = 0; level < levels; ++level)
        plot.across.names.push_back(titleOf(static_cast<TruthLevel>(level)));
    plot.up.names.emplace_back();
    for (std::size_t place = 1; place <= answer.rows.size(); ++place) plot.up.names.push_back(std::to_string(place));
    for (std::size_t i = 0; i < answer.rows.size(); ++i) {
        const LevelRow& row = answer.rows[i];
        PlotSeries line{shownTitle(row.schedule), {}};
        line.dots = true;
        line.size = 1.75;
        for (std::size_t level = 0; level < levels; ++level) {
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
