// Memory against time of schedules that keep their activations, recompute them, move them to the host, or both.
#include <cmath>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "schedules/library/registry.h"
#include "schedules/survey/explore_question.h"

namespace stagewright {

namespace {

struct KeepingWay {
    const char* name;
    const char* title;
    bool recompute, offload;
    PlotShape shape;
};
constexpr KeepingWay keepingWays[] = {{"none", "kept", false, false, PlotShape::Disc},
                                      {"recompute", "recomputed", true, false, PlotShape::Square},
                                      {"offload", "on the host meanwhile", false, true, PlotShape::Triangle},
                                      {"both", "recomputed, their inputs on the host", true, true, PlotShape::Diamond}};

std::vector<SurveyField> keepingFields()
{
    std::vector<SurveyField> fields = parameterFields();
    fields.push_back(schedulesField(usualSchedules, {}));
    fields.push_back({.name = "copy",
                      .title = "Copy of an activation",
                      .help = "To the host or back, in forwards of a rank; copies of a rank come one after the other.",
                      .kind = FieldKind::Real,
                      .fallback = "0.25",
                      .least = 0,
                      .most = 1000,
                      .step = 0.05,
                      .slide = 2});
    fields.push_back({.name = "keep",
                      .title = "Stage input",
                      .help = "The share of an activation that a recomputed stage keeps.",
                      .kind = FieldKind::Real,
                      .fallback = "0.05",
                      .least = 0,
                      .most = 1,
                      .step = 0.01});
    return fields;
}

Result<SurveyAnswer> keepingAnswer(const SurveyQuestion& asked, const Progress& progress)
{
    const ExploreQuestion question = ExploreQuestion::of(asked);
    STAGEWRIGHT_TRY(const auto schedules, schedulesAsked(asked, {}));
    std::vector<Setup> points;
    for (const std::string& schedule : schedules)
        for (const KeepingWay& way : keepingWays) {
            Setup& point = points.emplace_back(question.point(schedule));
            if (way.recompute) {
                point.recompute = "all";
                point.keep = asked.real("keep");
            }
            if (!way.offload) continue;
            point.offload = "all";
            point.costs += fmt::format("{}COPY={}", point.costs.empty() ? "" : ",", asked.real("copy"));
        }
    const auto rows = sweep(points, exploreSource(), progress);
    SurveyTable table{"keeping", "What becomes of activations until their backward", figureColumns(), {}};
    table.columns.insert(table.columns.begin(), {{"schedule", "Schedule", ColumnKind::Text},
                                                 {"activations", "Activations", ColumnKind::Text}});
    Plot plot{"Largest activation peak, microbatches", "Step time", {}};
    plot.nothing = "simulating…";
    plot.up.least = plot.across.least = 0;
    for (std::size_t w = 0; w < std::size(keepingWays); ++w) {
        const KeepingWay& way = keepingWays[w];
        PlotSeries series{way.title, {}, PlotMark::Points};
        series.shape = way.shape;
        for (std::size_t i = 0; i < schedules.size(); ++i) {
            const SweepRow& row = rows[i * std::size(keepingWays) + w];
            if (!row.good() || row.peaks.empty()) continue;
            const double x = row.memoryValue(row.peak()), y = row.timeValue(row.step);
            PlotPoint point{x, y, shownTitle(schedules[i])};
            if (!overCap(row, question).empty()) point.shape = PlotShape::Cross;
            series.points.push_back(std::move(point));
            plot.items.push_back(PlotItem::at(x, y,
                                              fmt::format("{}, {}: step {}, peak {}", shownTitle(schedules[i]),
                                                          way.title, shortNumber(y), shortNumber(x)),
                                              static_cast<int>(plot.items.size()), static_cast<int>(i)));
        }
        plot.series.push_back(std::move(series));
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (!rows[i].done) continue;
        TableRow cells{schedules[i / std::size(keepingWays)],
                       std::string(keepingWays[i % std::size(keepingWays)].name)};
        addFigures(cells, rows[i], question);
        table.rows.push_back(std::move(cells));
    }
    return SurveyAnswer{.setup = fmt::format("{} A copy takes {} forwards, an input is {} of an activation.",
                                             setupOf(question), shortNumber(asked.real("copy")),
                                             shortNumber(asked.real("keep"))),
                        .tables = {std::move(table)},
                        .units = exploreUnits,
                        .plot = std::move(plot),
                        .complete = !progress.cancelled()};
}

} // namespace

namespace surveys {
extern const SurveyInfo keeping;
const SurveyInfo keeping{"keeping", "Kept, recomputed or offloaded",
                         "memory against time of schedules that keep, recompute or offload activations", keepingFields,
                         keepingAnswer};
} // namespace surveys

} // namespace stagewright
