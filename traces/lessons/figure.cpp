#include "traces/lessons/figure.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "schedules/library/registry.h"
#include "schedules/model/collective_costs.h"
#include "schedules/model/mesh.h"
#include "traces/lessons/words.h"
#include "traces/plot/kind_ink.h"
#include "traces/plot/plot_files.h"

namespace stagewright::lessons {

namespace {

tl::unexpected<Error> wrong(const Figure& figure, const std::string& what)
{
    return fail(ErrorCode::Usage, fmt::format("figure {}: {}", figure.file, what),
                "write sweep comm 0..2 step 0.125 for NAMES, timelines NAMES, memory NAMES, bars FIGURE of NAMES, idle "
                "NAME, bytes NAME or pareto of NAMES");
}

Result<std::shared_ptr<const SimulatedReport>> simulated(const StepState& state, const std::string& name,
                                                         const std::string& setting = {})
{
    STAGEWRIGHT_TRY(auto settings, withSettings(state.canvas().settings, setting));
    Canvas canvas{{}, std::move(settings)};
    if (name == "mine") {
        canvas.schedule = state.canvas().schedule;
    } else {
        STAGEWRIGHT_TRY(canvas.schedule, makeFor(name, canvas.settings));
    }
    return SimulatedReport::create(canvas);
}

Result<double> number(const SimulatedReport& report, const std::string& key)
{
    STAGEWRIGHT_TRY(auto value, report.figure(key));
    if (const double* one = value.number()) return *one;
    if (const List* list = value.list()) {
        double largest = 0;
        for (const Value& one : *list)
            if (one.number()) largest = std::max(largest, *one.number());
        return largest;
    }
    return fail(ErrorCode::Usage, fmt::format("there is no figure '{}' of {}", key, report.schedule().name));
}

std::string scheduleTitleOf(const std::string& name) { return name == "mine" ? "yours" : shownTitle(name); }

std::string axisTitleOf(const std::string& key)
{
    if (key == "makespan") return "step time";
    if (key == "bubble_fraction") return "bubble ratio";
    if (key == "peak_activation") return "peak activation";
    std::string words = key;
    std::replace(words.begin(), words.end(), '_', ' ');
    return words;
}

Result<FigureData> sweep(const StepState& state, const Figure& figure, const std::string& text)
{
    const std::size_t at = text.find(" for ");
    if (at == std::string::npos) return wrong(figure, "a sweep needs 'for NAMES'");
    auto words = partsOf(std::string_view(text).substr(0, at), " ");
    const auto names = partsOf(std::string_view(text).substr(at + 5), ",");
    const auto dots = words.size() > 2 ? words[2].find("..") : std::string::npos;
    if (dots == std::string::npos || names.empty()) return wrong(figure, "a sweep needs a setting and its range");
    const auto first = numberOf(std::string_view(words[2]).substr(0, dots));
    const auto last = numberOf(std::string_view(words[2]).substr(dots + 2));
    double step = 1;
    std::string key = "makespan";
    for (std::size_t i = 3; i + 1 < words.size(); i += 2) {
        if (words[i] == "step")
            step = numberOf(words[i + 1]).value_or(0);
        else if (words[i] == "of")
            key = words[i + 1];
        else
            return wrong(figure, fmt::format("'{}' is unknown", words[i]));
    }
    if (!first || !last || *last < *first || step <= 0 || (*last - *first) / step > 400)
        return wrong(figure, "its range is invalid");
    FigureData out;
    out.plot = {words[1] == "comm" ? "latency" : words[1], axisTitleOf(key), {}};
    out.plot.legend = PlotLegend::LineEnds;
    for (const std::string& name : names) {
        PlotSeries series{scheduleTitleOf(name), {}};
        series.dash = PlotDash::Solid;
        for (int i = 0; *first + i * step <= *last + 1e-9; ++i) {
            const double x = *first + i * step;
            auto report = simulated(state, name, fmt::format("{}={}", words[1], x));
            if (!report) continue; // not for this shape
            if (auto y = number(**report, key)) series.points.push_back({x, *y});
        }
        if (series.points.empty())
            return wrong(figure, fmt::format("{} can't be simulated anywhere in the range", name));
        out.plot.series.push_back(std::move(series));
    }
    return out;
}

Result<FigureData> timelines(const StepState& state, const std::vector<std::string>& names)
{
    FigureData out;
    out.plot = {"time", {}, {{"", {}, PlotMark::Boxes}}};
    out.plot.up.downwards = true;
    out.plot.across.least = 0;
    for (const std::string& name : names) {
        STAGEWRIGHT_TRY(auto report, simulated(state, name));
        const auto timeline = report->timeline();
        if (!timeline) return fail(ErrorCode::Usage, fmt::format("{} can't run", name));
        const auto unit = static_cast<double>(timeline->timeUnit());
        for (int rank = 0; rank < timeline->ranks(); ++rank) {
            const auto row = static_cast<double>(out.plot.up.names.size());
            out.plot.up.names.push_back(fmt::format("{} {}", scheduleTitleOf(name), rank));
            const Track* track = timeline->trackOf(rank, Lane::Compute);
            if (track == nullptr) continue;
            for (const Span& span : timeline->spansOf(*track)) {
                PlotPoint box{static_cast<double>(span.start) / unit, row - 0.45,
                              span.op.microbatch < 0 ? "" : std::to_string(span.op.microbatch), inkOf(span.op.kind)};
                box.toX = static_cast<double>(span.end) / unit;
                box.toY = row + 0.45;
                out.plot.series[0].points.push_back(std::move(box));
            }
        }
    }
    return out;
}

// Bars with their values above, each series beside the one before.
void addBars(Plot& plot, std::string title, const std::vector<double>& values)
{
    PlotSeries bars{std::move(title), {}, PlotMark::Bars}, numbers{"", {}, PlotMark::Bars};
    bars.ink = seriesInk(plot.series.size() / 2);
    bars.group = numbers.group = static_cast<int>(plot.series.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        bars.points.push_back({static_cast<double>(i), values[i]});
        numbers.points.push_back({static_cast<double>(i), 0, fmt::format("{:.4g}", values[i])});
    }
    plot.series.push_back(std::move(bars));
    plot.series.push_back(std::move(numbers));
}

Result<FigureData> bars(const StepState& state, const std::vector<std::string>& names, const std::string& key)
{
    FigureData out;
    out.plot.up = axisTitleOf(key);
    std::vector<std::string>& labels = out.plot.across.names;
    if (key == "peak_activation") { // a group a rank, a series a schedule
        for (const std::string& name : names) {
            STAGEWRIGHT_TRY(auto report, simulated(state, name));
            addBars(out.plot, scheduleTitleOf(name), report->peaks());
            for (std::size_t r = labels.size(); r < report->peaks().size(); ++r)
                labels.push_back(fmt::format("rank {}", r));
        }
        if (names.size() == 1) out.plot.legend = PlotLegend::None;
        return out;
    }
    std::vector<double> values;
    for (const std::string& name : names) {
        STAGEWRIGHT_TRY(auto report, simulated(state, name));
        STAGEWRIGHT_TRY(auto value, number(*report, key));
        values.push_back(value);
        labels.push_back(scheduleTitleOf(name));
    }
    addBars(out.plot, {}, values);
    return out;
}

Result<FigureData> idle(const StepState& state, const std::string& name)
{
    STAGEWRIGHT_TRY(auto report, simulated(state, name));
    FigureData out;
    out.plot.up = "idle time";
    const BubbleReport& bubbles = report->bubbles();
    std::vector<double> values;
    for (std::size_t i = 0; i < idleCauseCount; ++i) {
        if (bubbles.byCause[i] == 0) continue;
        values.push_back(static_cast<double>(bubbles.byCause[i]) / static_cast<double>(report->costs().timeUnit));
        out.plot.across.names.emplace_back(titleOf(static_cast<IdleCause>(i)));
    }
    addBars(out.plot, {}, values);
    return out;
}

// What a rank keeps between steps, by what it is: with nothing shared, and as the replicas share it now.
Result<FigureData> bytesOf(const StepState& state, const std::string& name)
{
    FigureData out;
    out.plot.up = "GB on rank 0";
    out.plot.legend = PlotLegend::Right;
    PlotSeries weights{"weights", {}, PlotMark::Bars, PlotInk{PlotHue::Forward}},
        gradients{"gradients", {}, PlotMark::Bars, PlotInk{PlotHue::Backward}},
        optimizer{"optimizer", {}, PlotMark::Bars, PlotInk{PlotHue::Optimizer}};
    for (const bool now : {false, true}) {
        STAGEWRIGHT_TRY(auto report, simulated(state, name, now ? "" : "shard=none"));
        const auto x = static_cast<double>(out.plot.across.names.size());
        out.plot.across.names.emplace_back(now ? "now" : "nothing shared");
        double sums[3] = {};
        const int stages = std::min(report->schedule().stages, report->costs().stages());
        for (int stage = 0; stage < stages; ++stage)
            for (const int rank : holdersOf(report->schedule().placement, stage))
                if (rank == 0) {
                    const HeldState held = heldState(report->costs(), report->schedule(), stage, rank);
                    sums[0] += static_cast<double>(held.weights) / 1e9;
                    sums[1] += static_cast<double>(held.gradients) / 1e9;
                    sums[2] += static_cast<double>(held.optimizer) / 1e9;
                }
        PlotSeries* parts[] = {&weights, &gradients, &optimizer};
        for (int i = 0; i < 3; ++i) parts[i]->points.push_back({x, sums[i], fmt::format("{:.3g}", sums[i])});
    }
    out.plot.series = {weights, gradients, optimizer};
    return out;
}

Result<FigureData> pareto(const StepState& state, const std::vector<std::string>& names)
{
    FigureData out;
    out.plot = {"peak activation", "span", {{"", {}, PlotMark::Points}}};
    for (const std::string& name : names) {
        STAGEWRIGHT_TRY(auto report, simulated(state, name));
        auto peak = number(*report, "peak_activation");
        auto span = number(*report, "span");
        if (!peak || !span) return fail(ErrorCode::Usage, fmt::format("{} can't run", name));
        auto& points = out.plot.series[0].points;
        points.push_back({*peak, *span, scheduleTitleOf(name), seriesInk(points.size())});
    }
    return out;
}

} // namespace

double FigureData::height(double width) const
{
    return plot.up.names.empty() ? std::clamp(width * 0.53, 220.0, 380.0)
                                 : 56 + 18 * static_cast<double>(plot.up.names.size());
}

Result<FigureData> figureOf(const StepState& state, const Lesson& lesson, const Figure& figure, const Learner& learner)
{
    const auto clauses = partsOf(figure.of, ";");
    if (clauses.empty()) return wrong(figure, "it names no schedule");
    const std::string& text = clauses.front();
    const KeyValue words = keyValueOf(text, ' ');
    const std::string what(words.key), rest(words.value.value_or(""));
    Result<FigureData> out = wrong(figure, fmt::format("'{}' is not a kind of figure", what));
    const std::size_t of = rest.find("of ");
    if (what == "sweep")
        out = sweep(state, figure, text);
    else if (what == "timelines")
        out = timelines(state, partsOf(rest, ","));
    else if (what == "memory")
        out = bars(state, partsOf(rest, ","), "peak_activation");
    else if (what == "idle")
        out = idle(state, rest);
    else if (what == "bars" && of != std::string::npos)
        out = bars(state, partsOf(rest.substr(of + 3), ","), std::string(trimmed(rest.substr(0, of))));
    else if (what == "bytes")
        out = bytesOf(state, rest);
    else if (what == "pareto" && of == 0)
        out = pareto(state, partsOf(rest.substr(3), ","));
    if (!out) return out;
    for (std::size_t i = 1; i < clauses.size(); ++i) {
        constexpr std::string_view from = "points from ";
        if (!clauses[i].starts_with(from)) return wrong(figure, fmt::format("'{}' is unknown", clauses[i]));
        const std::string id(trimmed(std::string_view(clauses[i]).substr(from.size())));
        const auto blocks = lesson.all<RunBlock>();
        if (std::none_of(blocks.begin(), blocks.end(), [&](const RunBlock* block) { return block->id == id; }))
            return wrong(figure, fmt::format("there is no run '{}'", id));
        // Measured times in the unit of the picture: the mean forward of the run is one unit.
        for (const auto& [name, run] : learner.runs) {
            if (!name.starts_with(id + "/") || out->plot.legend != PlotLegend::LineEnds) continue;
            const auto fitted = SimulatedReport::predicted(*run);
            if (!fitted) continue;
            const auto costs = fitted->figure("stage_costs");
            const auto measured = RecordedReport(run).figure("makespan");
            if (!costs || !costs->list() || !measured || !measured->number()) continue;
            double forward = 0;
            for (const Value& one : *costs->list())
                forward += *one.number() / static_cast<double>(costs->list()->size());
            if (forward <= 0) continue;
            out->plot.series.push_back({"",
                                        {{state.canvas().settings.comm, *measured->number() / forward,
                                          scheduleTitleOf(name.substr(id.size() + 1)) + " measured"}},
                                        PlotMark::Points,
                                        PlotInk{PlotHue::Text},
                                        {},
                                        PlotShape::Ring});
        }
    }
    out->caption = state.say(figure.caption);
    return out;
}

std::string figureSvg(const FigureData& data)
{
    constexpr double width = 720;
    return plotPicture(data.plot, {}, data.caption, width, data.height(width));
}

} // namespace stagewright::lessons
