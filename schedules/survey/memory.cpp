#include "schedules/survey/memory.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "schedules/library/registry.h"

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

// The rows at one place.
struct MemoryPlace {
    double x = 0, y = 0;
    std::vector<std::size_t> rows;
    bool onFrontier = false;
    bool over = false;  // the cap
    bool stale = false; // every row has stale weights
    bool copies = false;
};

std::vector<MemoryPlace> placesOf(const std::vector<SweepRow>& rows, const ExploreQuestion& question,
                                  ExploreMeasure measure)
{
    const std::vector<std::size_t> frontier = memoryFrontier(rows, question);
    const auto xOf = [&](std::size_t i) { return rows[i].memoryValue(rows[i].peak()); };
    const auto yOf = [&](std::size_t i) { return measureOf(rows[i], measure); };
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (rows[i].good()) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return xOf(a) != xOf(b) ? xOf(a) < xOf(b) : yOf(a) < yOf(b);
    });
    std::vector<MemoryPlace> places;
    for (const std::size_t i : order) {
        if (places.empty() || places.back().x != xOf(i) || std::abs(places.back().y - yOf(i)) > 1e-9)
            places.push_back({xOf(i), yOf(i), {}, false, !overCap(rows[i], question).empty(), true, true});
        MemoryPlace& place = places.back();
        place.rows.push_back(i);
        place.stale = place.stale && !rows[i].synchronous;
        place.copies = place.copies && rows[i].copies;
        place.onFrontier = place.onFrontier || std::find(frontier.begin(), frontier.end(), i) != frontier.end();
    }
    return places;
}

// "GPipe, Eager 1F1B +3".
std::string nameOf(const MemoryPlace& place, const std::vector<SweepRow>& rows, std::size_t most)
{
    std::vector<std::string> names;
    for (std::size_t i = 0; i < std::min(most, place.rows.size()); ++i)
        names.push_back(shownTitle(rows[place.rows[i]].schedule()));
    return joined(names) + (place.rows.size() > most ? fmt::format(" +{}", place.rows.size() - most) : "");
}

std::string textOf(const MemoryPlace& place, const std::vector<SweepRow>& rows, const ExploreQuestion& question,
                   ExploreMeasure measure)
{
    std::string text = fmt::format("{}\npeak {} microbatches, {}: {}", nameOf(place, rows, 6), fixedNumber(place.x, 2),
                                   lowered(titleOf(measure)), measureText(place.y, measure));
    if (const std::string over = overCap(rows[place.rows.front()], question); !over.empty()) text += "\n" + over;
    if (place.stale) text += "\nstale weights: training results differ";
    if (place.copies) text += "\neach stage's weights are held twice";
    if (place.onFrontier) text += "\non the frontier: no schedule this fast needs less memory";
    return text;
}

// A line for each kind of bound, up to the edge.
void addBounds(Plot& plot, const std::vector<ExploreBound>& bounds)
{
    for (const int chunks : {1, 2}) {
        PlotSeries line{
            chunks == 1 ? "proven bound for whole ops, one stage per rank" : "for V placement", {}, PlotMark::Steps};
        line.ink = PlotInk{chunks == 1 ? PlotHue::Backward : PlotHue::Weight};
        line.dash = chunks == 1 ? PlotDash::Dash : PlotDash::DashDot;
        line.size = 1.25;
        line.toEdge = line.clipped = true;
        for (const ExploreBound& bound : bounds)
            if (bound.chunks == chunks) line.points.push_back({bound.cap, bound.makespan});
        plot.series.push_back(std::move(line));
    }
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

Plot memoryPlot(const std::vector<SweepRow>& rows, const std::vector<ExploreBound>& bounds,
                const ExploreQuestion& question, ExploreMeasure measure)
{
    Plot plot{"Largest activation peak of a rank, microbatches on 1/p of the model", titleOf(measure), {}};
    plot.nothing = std::any_of(rows.begin(), rows.end(), [](const SweepRow& row) { return row.done; })
                       ? "no schedule is possible for this shape"
                       : "simulating…";
    plot.across.least = 0;
    const std::vector<MemoryPlace> places = placesOf(rows, question, measure);
    if (places.empty()) return plot;
    if (question.cap > 0)
        plot.rules.push_back({question.cap, true, fmt::format("cap {}", fixedNumber(question.cap, 1))});
    if (measure == ExploreMeasure::StepTime) {
        plot.rules.push_back({workBound(question), false, "work, m (F + I + W)", {PlotHue::Secondary}, PlotDash::Dot});
        addBounds(plot, bounds);
    } else {
        plot.up.scale = PlotScale::Share;
        plot.up.least = std::min(0.0, std::min_element(places.begin(), places.end(), [](const auto& a, const auto& b) {
                                          return a.y < b.y;
                                      })->y);
    }
    PlotSeries frontier{"", {}, PlotMark::Steps, PlotInk{PlotHue::Accent}, PlotDash::Solid};
    frontier.size = 1.75;
    for (const std::size_t row : memoryFrontier(rows, question))
        frontier.points.push_back({rows[row].memoryValue(rows[row].peak()), measureOf(rows[row], measure)});
    plot.series.push_back(std::move(frontier));
    const auto marks = [&plot](const char* title, PlotHue hue, PlotShape shape, double size, int priority) {
        PlotSeries series{title, {}, PlotMark::Points, PlotInk{hue}, {}, shape, size};
        series.priority = priority;
        plot.series.push_back(std::move(series));
        return plot.series.size() - 1;
    };
    const std::size_t over = marks("over the cap", PlotHue::Faint, PlotShape::Cross, 3.5, 1),
                      plain = marks("schedule", PlotHue::Secondary, PlotShape::Disc, 3.5, 1),
                      stale = marks("stale weights", PlotHue::Secondary, PlotShape::Ring, 3.5, 1),
                      copies = marks("weights held twice", PlotHue::Secondary, PlotShape::Square, 3.5, 1),
                      best = marks("on the frontier", PlotHue::Accent, PlotShape::Disc, 4.5, 0);
    int column = 0;
    for (const MemoryPlace& place : places) {
        const std::size_t series = place.over         ? over
                                   : place.onFrontier ? best
                                   : place.copies     ? copies
                                   : place.stale      ? stale
                                                      : plain;
        const std::string two = nameOf(place, rows, 2), one = nameOf(place, rows, 1);
        PlotPoint point{place.x, place.y, two == one ? one : two + "\n" + one};
        if (place.onFrontier && place.copies) point.shape = PlotShape::Square;
        plot.series[series].points.push_back(std::move(point));
        const std::string text = textOf(place, rows, question, measure);
        for (std::size_t i = 0; i < place.rows.size(); ++i)
            plot.items.push_back(
                PlotItem::at(place.x, place.y, text, column, static_cast<int>(i), static_cast<int>(place.rows[i])));
        ++column;
    }
    return plot;
}

namespace surveys {
extern const SurveyInfo memory;
const SurveyInfo memory{"memory", "Memory against time",
                        "every schedule of the library by activation peak and step time, the frontier, proven bounds",
                        memoryFields, memoryAnswer};
} // namespace surveys

} // namespace stagewright
