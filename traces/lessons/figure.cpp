#include "traces/lessons/figure.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "schedules/base/shown_text.h"
#include "schedules/library/registry.h"
#include "traces/lessons/words.h"

namespace stagewright::lessons {

namespace {

tl::unexpected<Error> wrong(const Figure& figure, const std::string& what)
{
    return fail(ErrorCode::Usage, fmt::format("figure {}: {}", figure.file, what),
                "write sweep comm 0..2 step 0.125 for NAMES, timelines NAMES, memory NAMES, bars FIGURE of NAMES, idle "
                "NAME or pareto of NAMES");
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

std::string escaped(std::string_view text)
{
    std::string out;
    for (const char c : shownText(text))
        if (c == '<')
            out += "&lt;";
        else if (c == '>')
            out += "&gt;";
        else if (c == '&')
            out += "&amp;";
        else if (c == '"')
            out += "&quot;";
        else
            out += c;
    return out;
}

// "Eager 1F1B" for eager-1f1b.
std::string scheduleTitleOf(const std::string& name)
{
    if (name == "mine") return "yours";
    const auto found = findSchedule(name);
    if (!found) return name;
    const std::string_view title = (*found)->title;
    return std::string(title.substr(0, title.find(" (")));
}

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
    out.kind = FigureData::Kind::Lines;
    out.xTitle = words[1] == "comm" ? "latency" : words[1];
    out.yTitle = axisTitleOf(key);
    for (const std::string& name : names) {
        FigureSeries series{scheduleTitleOf(name), {}, false};
        for (int i = 0; *first + i * step <= *last + 1e-9; ++i) {
            const double x = *first + i * step;
            auto report = simulated(state, name, fmt::format("{}={}", words[1], x));
            if (!report) continue; // not for this shape
            if (auto y = number(**report, key)) series.points.emplace_back(x, *y);
        }
        if (series.points.empty())
            return wrong(figure, fmt::format("{} can't be simulated anywhere in the range", name));
        out.series.push_back(std::move(series));
    }
    return out;
}

Result<FigureData> timelines(const StepState& state, const std::vector<std::string>& names)
{
    FigureData out;
    out.kind = FigureData::Kind::Timelines;
    out.xTitle = "time";
    for (const std::string& name : names) {
        STAGEWRIGHT_TRY(auto report, simulated(state, name));
        const auto timeline = report->timeline();
        if (!timeline) return fail(ErrorCode::Usage, fmt::format("{} can't run", name));
        const auto unit = static_cast<double>(timeline->timeUnit());
        for (int rank = 0; rank < timeline->ranks(); ++rank) {
            FigureRow row{fmt::format("{} {}", scheduleTitleOf(name), rank), {}};
            if (const Track* track = timeline->trackOf(rank, Lane::Compute))
                for (const Span& span : timeline->spansOf(*track))
                    row.boxes.push_back({static_cast<double>(span.start) / unit, static_cast<double>(span.end) / unit,
                                         span.op.kind, span.op.microbatch});
            out.rows.push_back(std::move(row));
        }
    }
    return out;
}

Result<FigureData> bars(const StepState& state, const std::vector<std::string>& names, const std::string& key)
{
    FigureData out;
    out.kind = FigureData::Kind::Bars;
    out.yTitle = axisTitleOf(key);
    if (key == "peak_activation") { // a group a rank, a series a schedule
        for (const std::string& name : names) {
            STAGEWRIGHT_TRY(auto report, simulated(state, name));
            FigureSeries series{scheduleTitleOf(name), {}, false};
            for (const double peak : report->peaks())
                series.points.emplace_back(static_cast<double>(series.points.size()), peak);
            for (std::size_t r = out.labels.size(); r < series.points.size(); ++r)
                out.labels.push_back(fmt::format("rank {}", r));
            out.series.push_back(std::move(series));
        }
        return out;
    }
    FigureSeries series{key, {}, false};
    for (const std::string& name : names) {
        STAGEWRIGHT_TRY(auto report, simulated(state, name));
        STAGEWRIGHT_TRY(auto value, number(*report, key));
        series.points.emplace_back(static_cast<double>(series.points.size()), value);
        out.labels.push_back(scheduleTitleOf(name));
    }
    out.series.push_back(std::move(series));
    return out;
}

Result<FigureData> idle(const StepState& state, const std::string& name)
{
    STAGEWRIGHT_TRY(auto report, simulated(state, name));
    FigureData out;
    out.kind = FigureData::Kind::Bars;
    out.yTitle = "idle time";
    FigureSeries series{name, {}, false};
    const BubbleReport& bubbles = report->bubbles();
    for (std::size_t i = 0; i < idleCauseCount; ++i) {
        if (bubbles.byCause[i] == 0) continue;
        series.points.emplace_back(static_cast<double>(series.points.size()),
                                   static_cast<double>(bubbles.byCause[i]) /
                                       static_cast<double>(report->costs().timeUnit));
        out.labels.emplace_back(titleOf(static_cast<IdleCause>(i)));
    }
    out.series.push_back(std::move(series));
    return out;
}

Result<FigureData> pareto(const StepState& state, const std::vector<std::string>& names)
{
    FigureData out;
    out.kind = FigureData::Kind::Points;
    out.xTitle = "peak activation";
    out.yTitle = "span";
    for (const std::string& name : names) {
        STAGEWRIGHT_TRY(auto report, simulated(state, name));
        auto peak = number(*report, "peak_activation");
        auto span = number(*report, "span");
        if (!peak || !span) return fail(ErrorCode::Usage, fmt::format("{} can't run", name));
        out.series.push_back({scheduleTitleOf(name), {{*peak, *span}}, false});
    }
    return out;
}

// About, in Inter at 11 pixels.
double widthOf(std::string_view words)
{
    const auto letters = std::count_if(words.begin(), words.end(),
                                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
    return 6.3 * static_cast<double>(letters);
}

// Round values from least to most, at most five or so: steps of 1, 2 or 5.
std::vector<double> ticksOf(double least, double most)
{
    const double range = std::max(most - least, 1e-9), rough = range / 5,
                 power = std::pow(10.0, std::floor(std::log10(rough)));
    double step = 10 * power;
    for (const double factor : {5.0, 2.0, 1.0})
        if (factor * power >= rough - 1e-12) step = factor * power;
    std::vector<double> ticks;
    for (double tick = std::ceil(least / step - 1e-9) * step; tick <= most + step * 1e-9; tick += step)
        ticks.push_back(std::abs(tick) < step * 1e-6 ? 0 : tick);
    return ticks;
}

class Svg {
public:
    Svg(const FigureData& data, const FigureLook& look)
        : m_data(data), m_look(look),
          m_right(look.width - 20), m_colours{look.forward.fill, look.backward.fill, look.weight.fill,
                                              look.message.fill, look.other.fill,    look.secondary}
    {
        m_height = data.kind == FigureData::Kind::Timelines ? 48 + 18 * static_cast<double>(data.rows.size())
                                                            : std::clamp(look.width * 0.53, 220.0, 380.0);
    }

    std::string text()
    {
        if (m_data.kind == FigureData::Kind::Timelines)
            rows();
        else if (m_data.kind == FigureData::Kind::Bars)
            bars();
        else
            curves();
        double height = m_height + 4;
        if (!m_data.caption.empty()) {
            m_body += fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"11\" fill=\"{}\">{}</text>\n", left,
                                  m_height + 18, m_look.secondary, escaped(m_data.caption));
            height = m_height + 30;
        }
        return fmt::format(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
            "font-family=\"{3}\">\n<rect width=\"100%\" height=\"100%\" fill=\"{4}\"/>\n{2}</svg>\n",
            m_look.width, height, m_body, m_look.font, m_look.ground);
    }

private:
    static constexpr double left = 46, top = 22;

    void label(double x, double y, std::string_view words, const char* anchor = "middle",
               const std::string& colour = {})
    {
        m_body +=
            fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"11\" fill=\"{}\" text-anchor=\"{}\">{}</text>\n",
                        x, y, colour.empty() ? m_look.text : colour, anchor, escaped(words));
    }
    struct Box {
        double left, top, right, bottom;
        bool meets(const Box& other) const
        {
            return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
        }
    };
    // The name of a point beside it, where no other point and no other name is; right of it if there is no such place.
    void named(double x, double y, const std::string& name, const std::vector<Box>& points, std::vector<Box>& written)
    {
        const double wide = widthOf(name);
        const auto boxAt = [&](double from, double base) { return Box{from, base - 10, from + wide, base + 3}; };
        Box chosen = boxAt(std::min(x + 8, m_look.width - wide - 2), y - 4);
        for (const Box& place : {chosen, boxAt(x - 8 - wide, y + 4), boxAt(x + 8, y + 14), boxAt(x - 8 - wide, y - 4),
                                 boxAt(x - wide / 2, y - 9), boxAt(x - wide / 2, y + 17)}) {
            const auto meets = [&](const Box& other) { return place.meets(other); };
            if (place.left < 0 || place.right > m_look.width || std::any_of(points.begin(), points.end(), meets) ||
                std::any_of(written.begin(), written.end(), meets))
                continue;
            chosen = place;
            break;
        }
        written.push_back(chosen);
        label(chosen.left, chosen.bottom - 3, name, "start");
    }
    // As many words a line as fit.
    void wrapped(double x, double y, double room, const std::string& words)
    {
        std::string now;
        for (const std::string& word : partsOf(words, " ")) {
            const std::string longer = now.empty() ? word : fmt::format("{} {}", now, word);
            if (!now.empty() && widthOf(longer) > room) {
                label(x, y, now);
                y += 12;
                now = word;
            } else {
                now = longer;
            }
        }
        label(x, y, now);
    }
    void line(double x1, double y1, double x2, double y2, const std::string& colour)
    {
        m_body += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1,
                              x2, y2, colour);
    }

    void axis(double least, double most, double bottom)
    {
        for (const double value : ticksOf(least, most)) {
            const double y = bottom - (bottom - top) * (value - least) / (most - least);
            line(left, y, m_right, y, m_look.grid);
            label(left - 6, y + 4, fmt::format("{:.4g}", value), "end", m_look.secondary);
        }
        label(4, top - 9, m_data.yTitle, "start", m_look.secondary);
    }

    void curves()
    {
        double x0 = 1e300, x1 = -1e300, y1 = -1e300, y0 = 1e300, names = 0;
        for (const FigureSeries& series : m_data.series) {
            names = std::max(names, widthOf(series.name));
            for (const auto& [x, y] : series.points) {
                x0 = std::min(x0, x), x1 = std::max(x1, x);
                y0 = std::min(y0, y), y1 = std::max(y1, y);
            }
        }
        const double room = std::max((y1 - y0) * 0.08, 1e-3);
        y0 -= room, y1 += room;
        if (x1 <= x0) x1 = x0 + 1;
        const double bottom = m_height - 40;
        axis(y0, y1, bottom);
        const double end = m_right - std::min(names + 12, (m_right - left) * 0.45);
        const auto px = [&](double x) { return left + 10 + (end - left - 10) * (x - x0) / (x1 - x0); };
        const auto py = [&](double y) { return bottom - (bottom - top) * (y - y0) / (y1 - y0); };
        for (const double x : ticksOf(x0, x1))
            label(px(x), bottom + 16, fmt::format("{:.4g}", x), "middle", m_look.secondary);
        label((left + end) / 2, bottom + 32, m_data.xTitle, "middle", m_look.secondary);
        std::vector<double> taken; // heights of names already written
        std::vector<Box> points, written;
        for (const FigureSeries& series : m_data.series)
            for (const auto& [x, y] : series.points) points.push_back({px(x) - 5, py(y) - 5, px(x) + 5, py(y) + 5});
        std::size_t index = 0;
        for (const FigureSeries& series : m_data.series) {
            if (series.points.empty()) continue;
            const std::string& colour = m_colours[index % std::size(m_colours)];
            std::string path;
            for (const auto& [x, y] : series.points) path += fmt::format("{:.1f},{:.1f} ", px(x), py(y));
            if (m_data.kind == FigureData::Kind::Lines && !series.measured && series.points.size() > 1)
                m_body += fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"2\" points=\"{}\"/>\n",
                                      colour, path);
            else
                for (const auto& [x, y] : series.points)
                    m_body += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\" stroke=\"{}\"/>\n",
                                          px(x), py(y), series.measured ? m_look.ground : colour,
                                          series.measured ? m_look.text : colour);
            const auto& last = series.points.back();
            if (m_data.kind == FigureData::Kind::Points && !series.measured) {
                named(px(last.first), py(last.second), series.name, points, written);
                ++index;
                continue;
            }
            double y = py(last.second) + 4 + (m_data.kind == FigureData::Kind::Points ? -8 : 0);
            if (m_data.kind == FigureData::Kind::Lines) { // names of lines that end together are below each other
                while (std::any_of(taken.begin(), taken.end(), [&](double other) { return std::abs(other - y) < 12; }))
                    y += 3;
                taken.push_back(y);
            }
            label(std::min(px(last.first) + 8, m_look.width - widthOf(series.name) - 2), y, series.name, "start");
            ++index;
        }
    }

    void bars()
    {
        double most = 0;
        for (const FigureSeries& series : m_data.series)
            for (const auto& [x, y] : series.points) most = std::max(most, y);
        const double bottom = m_height - 40;
        axis(0, most > 0 ? most * 1.1 : 1, bottom);
        const double group = (m_right - left) / static_cast<double>(std::max<std::size_t>(m_data.labels.size(), 1));
        const double bar = group * 0.7 / static_cast<double>(std::max<std::size_t>(m_data.series.size(), 1));
        for (std::size_t i = 0; i < m_data.labels.size(); ++i)
            wrapped(left + group * (static_cast<double>(i) + 0.5), bottom + 16, group - 4, m_data.labels[i]);
        double legend = left;
        for (std::size_t s = 0; s < m_data.series.size(); ++s) {
            const std::string& colour = m_colours[s % std::size(m_colours)];
            for (std::size_t i = 0; i < m_data.series[s].points.size(); ++i) {
                const double y = m_data.series[s].points[i].second;
                const double height = (bottom - top) * y / (most > 0 ? most * 1.1 : 1);
                const double x = left + group * (static_cast<double>(i) + 0.15) + bar * static_cast<double>(s);
                m_body +=
                    fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", x,
                                bottom - height, bar * 0.92, height, colour);
                const std::string value = fmt::format("{:.4g}", y);
                if (widthOf(value) <= bar + 4) label(x + bar / 2, bottom - height - 4, value);
            }
            if (m_data.series.size() > 1) {
                m_body += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"9\" height=\"9\" fill=\"{}\"/>\n",
                                      legend, bottom + 24, colour);
                label(legend + 13, bottom + 32, m_data.series[s].name, "start");
                legend += 13 + widthOf(m_data.series[s].name) + 14;
            }
        }
    }

    void rows()
    {
        double most = 1e-9, names = 0;
        for (const FigureRow& row : m_data.rows) {
            names = std::max(names, widthOf(row.name));
            for (const auto& box : row.boxes) most = std::max(most, box.end);
        }
        const double begin = 12 + names;
        const auto px = [&](double x) { return begin + (m_right - begin) * x / most; };
        double y = top;
        for (const FigureRow& row : m_data.rows) {
            label(begin - 6, y + 12, row.name, "end");
            for (const auto& box : row.boxes) {
                const double w = px(box.end) - px(box.begin);
                const FigureLook::Ink& ink = m_look.of(box.kind);
                m_body += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"15\" fill=\"{}\" "
                                      "stroke=\"{}\" stroke-width=\"0.5\"/>\n",
                                      px(box.begin), y, w, ink.fill, m_look.ground);
                const std::string number = std::to_string(box.microbatch);
                if (box.microbatch >= 0 && widthOf(number) + 3 <= w)
                    label(px(box.begin) + w / 2, y + 11.5, number, "middle", ink.label);
            }
            y += 18;
        }
        line(px(0), y + 4, px(most), y + 4, m_look.secondary);
        for (const double tick : ticksOf(0, most)) {
            line(px(tick), y + 4, px(tick), y + 8, m_look.secondary);
            label(px(tick), y + 19, fmt::format("{:.4g}", tick), "middle", m_look.secondary);
        }
    }

    const FigureData& m_data;
    const FigureLook& m_look;
    double m_right;
    std::string m_colours[6];
    std::string m_body;
    double m_height = 380;
};

} // namespace

bool FigureData::empty() const
{
    const bool drawn =
        std::any_of(series.begin(), series.end(), [](const FigureSeries& one) { return !one.points.empty(); });
    const bool boxed = std::any_of(rows.begin(), rows.end(), [](const FigureRow& row) { return !row.boxes.empty(); });
    return !drawn && !boxed;
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
            if (!name.starts_with(id + "/") || out->kind != FigureData::Kind::Lines) continue;
            const auto fitted = SimulatedReport::predicted(*run);
            if (!fitted) continue;
            const auto costs = fitted->figure("stage_costs");
            const auto measured = RecordedReport(run).figure("makespan");
            if (!costs || !costs->list() || !measured || !measured->number()) continue;
            double forward = 0;
            for (const Value& one : *costs->list())
                forward += *one.number() / static_cast<double>(costs->list()->size());
            if (forward <= 0) continue;
            out->series.push_back({scheduleTitleOf(name.substr(id.size() + 1)) + " measured",
                                   {{state.canvas().settings.comm, *measured->number() / forward}},
                                   true});
        }
    }
    out->caption = state.say(figure.caption);
    return out;
}

const FigureLook::Ink& FigureLook::of(OpKind kind) const
{
    switch (ruleOf(kind).colour) {
    case ColourClass::Forward: return forward;
    case ColourClass::Backward: return backward;
    case ColourClass::Weight: return weight;
    case ColourClass::Communication: return message;
    default: return other;
    }
}

std::string figureSvg(const FigureData& data, const FigureLook& look) { return Svg(data, look).text(); }

} // namespace stagewright::lessons
