#include "traces/export/timeline_svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <fmt/core.h>
#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "schedules/base/text.h"
#include "schedules/base/ticks.h"
#include "schedules/model/kinds.h"
#include "traces/analysis/bubbles.h"
#include "traces/analysis/memory.h"
#include "traces/plot/svg_colours.h"

namespace stagewright {
namespace {

constexpr double gutter = 116, right = 12, ruler = 24, rowHeight = 34, rowGap = 8, chartHeight = 62, chartGap = 12;
constexpr std::size_t mostDrawn = 2000; // of a row drawn one by one

constexpr std::array<const char*, colourClassCount> classNames{"f", "b", "w", "c", "o", "d"};
constexpr std::array<const char*, colourClassCount> classTitles{"Forward",       "Backward",  "Weight gradient",
                                                                "Communication", "Optimizer", "Delay"};

std::size_t classOf(OpKind kind) { return static_cast<std::size_t>(ruleOf(kind).colour); }

struct TimePlot {
    Nanos begin = 0;
    Nanos duration = 1;
    double width = 0; // of the plot
    double x(Nanos time) const
    {
        return gutter + static_cast<double>(time - begin) / static_cast<double>(duration) * width;
    }
};

struct StepWindow {
    Nanos begin = 0;
    Nanos end = 0;
};

// From the first to the last compute span of the step.
StepWindow windowOf(const Timeline& timeline, int step)
{
    StepWindow window{0, 0};
    bool found = false;
    for (const Track& track : timeline.tracks()) {
        if (track.lane != Lane::Compute) continue;
        const auto [first, last] = timeline.stepRange(track, step);
        for (SpanId id = first; id < last; ++id) {
            const Span& span = timeline.spans()[id];
            if (span.step != step) continue;
            window.begin = found ? std::min(window.begin, span.start) : span.start;
            window.end = found ? std::max(window.end, span.end) : span.end;
            found = true;
        }
    }
    return window;
}

TimePlot plotOf(const StepWindow& window, const SvgOptions& options)
{
    return {window.begin, std::max<Nanos>(1, options.duration > 0 ? options.duration : window.end - window.begin),
            std::max(60.0, options.width - gutter - right)};
}

std::string open(double width, double height, const std::string& title)
{
    return fmt::format(
        "<svg class=\"sw\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\"><title>{}</title>\n", width,
        height, escaped(title), escaped(title));
}

// Labelled ticks at steps of 1, 2 or 5.
std::string rulerSvg(const TimePlot& plot, double bottom, Nanos unit)
{
    const double least = static_cast<double>(plot.duration) / (plot.width / 80);
    const double scale = unit != 1      ? static_cast<double>(unit)
                         : least >= 1e8 ? 1e9
                         : least >= 1e5 ? 1e6
                         : least >= 1e2 ? 1e3
                                        : 1;
    const char* name = unit != 1 ? "units" : scale == 1e9 ? "s" : scale == 1e6 ? "ms" : scale == 1e3 ? "µs" : "ns";
    const RoundStep round = roundStep(least / scale);
    const double step = round.size;
    const int decimals = round.decimals();
    std::string text;
    for (int i = 0; i * step * scale <= static_cast<double>(plot.duration); ++i) {
        const double x = plot.x(plot.begin + static_cast<Nanos>(std::llround(i * step * scale)));
        text += fmt::format("<path class=\"grid\" d=\"M{0:.1f} {1} V{2:.0f}\"/><text class=\"tick\" x=\"{3:.1f}\" "
                            "y=\"14\">{4:.{5}f}{6}</text>\n",
                            x, ruler - 4, bottom, x + 3, i * step, decimals,
                            i == 0 ? std::string(" ") + name : std::string());
    }
    return text;
}

struct Row {
    int rank = 0;
    std::vector<SpanId> spans;
};

std::vector<Row> rowsOf(const Timeline& timeline, int step, int most)
{
    std::vector<Row> rows;
    for (const Track& track : timeline.tracks()) {
        if (track.lane != Lane::Compute) continue;
        if (rows.empty() || rows.back().rank != track.rank) {
            if (static_cast<int>(rows.size()) == most) break;
            rows.push_back({track.rank, {}});
        }
        const auto [first, last] = timeline.stepRange(track, step);
        for (SpanId id = first; id < last; ++id)
            if (timeline.spans()[id].step == step) rows.back().spans.push_back(id);
    }
    return rows;
}

void drawSpans(std::string& out, const Timeline& timeline, const Row& row, const TimePlot& plot, double top, Nanos unit)
{
    Nanos before = -1;
    for (const SpanId id : row.spans) {
        const Span& span = timeline.spans()[id];
        const double x0 = plot.x(span.start), x1 = plot.x(span.end);
        const bool paired = span.start < before; // issued with the one before: the lower half
        before = std::max(before, span.end);
        const double gap = x1 - x0 > 5 ? 0.8 : 0, width = std::max(0.6, x1 - x0 - gap);
        const double y = paired ? top + rowHeight / 2 : top, height = paired ? rowHeight / 2 : rowHeight;
        const std::size_t kind = classOf(span.op.kind);
        out += fmt::format("<g><title>{}, rank {}: {} from {}</title><rect class=\"{}\" x=\"{:.2f}\" y=\"{:.1f}\" "
                           "width=\"{:.2f}\" height=\"{:.1f}\"{}/>",
                           escaped(timeline.nameOf(span)), row.rank, formatDuration(span.duration(), unit),
                           formatDuration(span.start - plot.begin, unit), classNames[kind], x0, y, width, height,
                           width > 5 ? " rx=\"2\"" : "");
        const std::string label =
            span.label == 0 && span.op.microbatch >= 0 ? std::to_string(span.op.microbatch) : std::string();
        if (!label.empty() && width > 7.0 * static_cast<double>(label.size()) + 3)
            out += fmt::format("<text class=\"l{}\" x=\"{:.2f}\" y=\"{:.1f}\">{}</text>", classNames[kind],
                               x0 + width / 2, y + height / 2 + 4, label);
        out += "</g>\n";
    }
}

// One column a unit of width; kinds stacked from below in fixed order, idle on top.
void drawColumns(std::string& out, const Timeline& timeline, const Row& row, const TimePlot& plot, double top)
{
    const auto columns = static_cast<std::size_t>(plot.width);
    std::vector<std::array<double, colourClassCount>> ink(columns);
    for (const SpanId id : row.spans) {
        const Span& span = timeline.spans()[id];
        const double x0 = std::max(0.0, plot.x(span.start) - gutter),
                     x1 = std::min(static_cast<double>(columns), plot.x(span.end) - gutter);
        for (auto column = static_cast<std::size_t>(x0); column < columns && static_cast<double>(column) < x1; ++column)
            ink[column][classOf(span.op.kind)] +=
                std::min(x1, static_cast<double>(column + 1)) - std::max(x0, static_cast<double>(column));
    }
    for (std::size_t kind = 0; kind < colourClassCount; ++kind) {
        std::string path;
        for (std::size_t column = 0; column < columns; ++column) {
            double below = 0;
            for (std::size_t k = 0; k < kind; ++k) below += ink[column][static_cast<std::size_t>(k)];
            const double share = std::min(ink[column][static_cast<std::size_t>(kind)], 1 - std::min(1.0, below));
            if (share < 0.004) continue;
            path += fmt::format("M{} {:.1f}h1v{:.1f}h-1z", static_cast<int>(gutter) + static_cast<int>(column),
                                top + rowHeight * (1 - below), -rowHeight * share);
        }
        if (!path.empty()) out += fmt::format("<path class=\"{}\" d=\"{}\"/>\n", classNames[kind], path);
    }
}

constexpr std::string_view svgRules =
    "svg.sw{display:block;width:100%;height:auto;font:11px Inter,system-ui,\"Helvetica Neue\",Arial,sans-serif}\n"
    ".f{fill:var(--f)}.b{fill:var(--b)}.w{fill:var(--w)}.c{fill:var(--c)}.o{fill:var(--o)}.d{fill:var(--d)}\n"
    "svg .lf,svg .lb,svg .lw,svg .lc,svg .lo,svg .ld{font-size:12px;font-weight:600;text-anchor:middle}\n"
    ".lf{fill:var(--lf)}.lb{fill:var(--lb)}.lw{fill:var(--lw)}.lc{fill:var(--lc)}.lo{fill:var(--lo)}.ld{fill:var(--"
    "text)}\n"
    ".rank{fill:var(--text);font-size:13px;font-weight:600}.sub{fill:var(--secondary)}.tick{fill:var(--secondary)}."
    "grid{stroke:var(--grid);fill:none}\n"
    ".idle{fill:var(--idle)}.hatch{stroke:var(--hatch);fill:none}.line{stroke:var(--accent);stroke-width:1.5;fill:"
    "none}.area{fill:var(--area)}.peak{fill:var(--accent)}\n";

} // namespace

std::string svgStyle()
{
    return fmt::format(
        ":root{{color-scheme:light dark;{}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{}}}}}\n{}",
        lightColours, darkColours, svgRules);
}

std::string timelineSvg(const Run& run, int step, const SvgOptions& options)
{
    const Timeline& timeline = *run.timeline;
    const StepWindow window = windowOf(timeline, step);
    if (window.end <= window.begin) return {};
    const TimePlot plot = plotOf(window, options);
    const std::vector<Row> rows = rowsOf(timeline, step, options.mostRanks);
    const bool cut = static_cast<int>(rows.size()) < timeline.ranks();
    const double bottom = ruler + static_cast<double>(rows.size()) * (rowHeight + rowGap),
                 height = bottom + (cut ? 20 : 2);
    const Nanos unit = timeline.timeUnit();
    std::string out = open(options.width, height, options.title.empty() ? "Timeline of the step" : options.title);
    // A pattern's name is used in the whole page: the same one everywhere.
    out += "<defs><pattern id=\"idle\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"><rect class=\"idle\" "
           "width=\"6\" height=\"6\"/><path class=\"hatch\" d=\"M-1 1l2-2M0 6l6-6M5 7l2-2\"/></pattern></defs>\n";
    out += rulerSvg(plot, bottom, unit);
    double top = ruler;
    for (const Row& row : rows) {
        Nanos busy = 0;
        for (const SpanId id : row.spans)
            if (ruleOf(timeline.spans()[id].op.kind).busy) busy += timeline.spans()[id].duration();
        const double share = static_cast<double>(busy) / static_cast<double>(window.end - window.begin);
        out += fmt::format("<text class=\"rank\" x=\"0\" y=\"{:.1f}\">Rank {}</text><text class=\"sub\" x=\"0\" "
                           "y=\"{:.1f}\">busy {}</text>\n",
                           top + 15, row.rank, top + 29, formatPercent(std::min(1.0, share), 0));
        out += fmt::format("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"url(#idle)\"/>\n",
                           gutter, top, plot.x(window.end) - gutter, rowHeight);
        if (row.spans.size() <= mostDrawn)
            drawSpans(out, timeline, row, plot, top, unit);
        else
            drawColumns(out, timeline, row, plot, top);
        top += rowHeight + rowGap;
    }
    if (cut)
        out += fmt::format("<text class=\"sub\" x=\"{:.0f}\" y=\"{:.0f}\">The first {} of {} ranks.</text>\n", gutter,
                           top + 10, rows.size(), timeline.ranks());
    return out + "</svg>\n";
}

std::string memorySvg(const Run& run, int step, const SvgOptions& options)
{
    const Timeline& timeline = *run.timeline;
    const StepWindow window = windowOf(timeline, step);
    if (!timeline.hasMemory() || window.end <= window.begin) return {};
    const TimePlot plot = plotOf(window, options);
    const int ranks = std::min(timeline.ranks(), options.mostRanks);
    struct Chart {
        std::vector<MemoryPoint> points;
        Bytes peak = 0;
        Nanos peakTime = 0;
    };
    std::vector<Chart> charts;
    Bytes most = 1;
    for (int rank = 0; rank < ranks; ++rank) {
        Chart chart;
        for (const MemoryPoint& point : memorySeries(timeline, rank, step).points) {
            const Nanos time = std::clamp(point.time, window.begin, window.end);
            if (!chart.points.empty() && chart.points.back().time == time)
                chart.points.back().inUse = point.inUse;
            else
                chart.points.push_back({time, point.inUse});
            if (point.inUse > chart.peak) {
                chart.peak = point.inUse;
                chart.peakTime = time;
            }
        }
        most = std::max(most, chart.peak);
        charts.push_back(std::move(chart));
    }
    const double bottom = ruler + static_cast<double>(charts.size()) * (chartHeight + chartGap);
    std::string out =
        open(options.width, bottom + 2, options.title.empty() ? "Activation memory of the step" : options.title);
    out += rulerSvg(plot, bottom, timeline.timeUnit());
    double base = ruler + chartHeight;
    for (std::size_t i = 0; i < charts.size(); ++i, base += chartHeight + chartGap) {
        const Chart& chart = charts[i];
        const auto y = [&](Bytes bytes) {
            return base - static_cast<double>(bytes) / static_cast<double>(most) * (chartHeight - 6);
        };
        out += fmt::format("<text class=\"rank\" x=\"0\" y=\"{:.1f}\">Rank {}</text><text class=\"sub\" x=\"0\" "
                           "y=\"{:.1f}\">peak {}</text>\n",
                           base - 34, i, base - 19, formatBytes(chart.peak, timeline.memoryUnit()));
        // Steps, at most four per unit of width: the largest of coinciding values is kept.
        std::string path = fmt::format("M{:.2f} {:.2f}", gutter, base);
        double lastX = gutter;
        Bytes held = 0, largest = 0;
        for (const MemoryPoint& point : chart.points) {
            const double x = plot.x(point.time);
            if (x - lastX < 0.25) {
                largest = std::max(largest, point.inUse);
                held = point.inUse;
                continue;
            }
            if (largest > held) path += fmt::format("V{:.2f}", y(largest));
            path += fmt::format("V{:.2f}H{:.2f}V{:.2f}", y(held), x, y(point.inUse));
            lastX = x;
            held = largest = point.inUse;
        }
        path += fmt::format("H{:.2f}V{:.2f}", plot.x(window.end), base);
        out += fmt::format("<path class=\"area\" d=\"{0}z\"/><path class=\"line\" d=\"{0}\"/><path class=\"grid\" "
                           "d=\"M{1} {2:.1f}H{3:.1f}\"/>\n",
                           path, gutter, base, gutter + plot.width);
        if (chart.peak > 0)
            out += fmt::format(
                "<circle class=\"peak\" cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"3.5\"><title>peak {}</title></circle>\n",
                plot.x(chart.peakTime), y(chart.peak), formatBytes(chart.peak, timeline.memoryUnit()));
    }
    return out + "</svg>\n";
}

std::string legendHtml(const Run& run, int step)
{
    std::array<bool, colourClassCount> occurs{};
    for (const Row& row : rowsOf(*run.timeline, step, run.timeline->ranks()))
        for (const SpanId id : row.spans) occurs[classOf(run.timeline->spans()[id].op.kind)] = true;
    std::string out = "<p class=\"legend\">";
    for (std::size_t kind = 0; kind < colourClassCount; ++kind)
        if (occurs[static_cast<std::size_t>(kind)])
            out += fmt::format("<span><svg width=\"12\" height=\"12\" aria-hidden=\"true\"><rect class=\"{}\" "
                               "width=\"12\" height=\"12\" rx=\"2\"/></svg> {}</span> ",
                               classNames[kind], classTitles[kind]);
    return out + "<span><svg width=\"18\" height=\"12\" aria-hidden=\"true\"><rect width=\"18\" height=\"12\" "
                 "fill=\"url(#idle)\"/></svg> Idle</span></p>\n";
}

} // namespace stagewright
