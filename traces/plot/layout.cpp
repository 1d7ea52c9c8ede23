#include "traces/plot/layout.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "schedules/base/text.h"
#include "schedules/base/ticks.h"

namespace stagewright {
namespace {

constexpr double besideArea = 7;    // from a number to the area
constexpr double mostBeside = 0.34; // of the width for the text at one side
constexpr double perTickUp = 44, perTickAcross = 70, perTickLow = 28, low = 180; // of a low plot
constexpr double widestBar = 92;
constexpr double mostEmpty = 0.15, aroundEnds = 0.04; // of what the points need up

// What the points of a plot need of one axis.
struct Extent {
    double least = std::numeric_limits<double>::infinity(), most = -std::numeric_limits<double>::infinity();
    bool whole = true; // every value
    void add(double value)
    {
        if (!std::isfinite(value)) return;
        whole = whole && value == std::floor(value);
        least = std::min(least, value);
        most = std::max(most, value);
    }
    bool empty() const { return most < least; }
    void widen(double share)
    {
        const double range = most > least ? most - least : std::max(1e-3, std::abs(most) * 0.2);
        least -= range * share;
        most += range * share;
    }
};

bool anyMark(const Plot& plot, std::initializer_list<PlotMark> marks)
{
    return std::any_of(plot.series.begin(), plot.series.end(), [&](const PlotSeries& one) {
        return std::find(marks.begin(), marks.end(), one.mark) != marks.end();
    });
}

double widest(const std::vector<std::string>& texts, const PlotCanvas& canvas)
{
    double wide = 0;
    for (const std::string& text : texts) wide = std::max(wide, canvas.textWidth(text, PlotFont::Small));
    return wide;
}

std::string tickText(double value, RoundStep step, PlotScale scale, double unit)
{
    switch (scale) {
    case PlotScale::Log10: return shortNumber(value, 12);
    case PlotScale::Share: return formatPercent(value, step.size < 0.01 ? 1 : 0);
    default: return fixedNumber(value / unit, RoundStep{step.size / unit}.decimals());
    }
}

} // namespace

bool inLegend(const PlotSeries& series)
{
    return !series.title.empty() && (!series.points.empty() || series.mark == PlotMark::Cells);
}

PlotInk inkOf(const Plot& plot, std::size_t series) { return plot.series[series].ink.value_or(seriesInk(series)); }

std::string elided(std::string_view text, double width, const PlotCanvas& canvas, PlotFont font)
{
    if (canvas.textWidth(text, font) <= width) return std::string(text);
    for (std::size_t end = text.size(); end > 0;) {
        do --end;
        while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
        const std::string out = std::string(text.substr(0, end)) + "…";
        if (canvas.textWidth(out, font) <= width) return out;
    }
    return {};
}

std::string wrapped(std::string_view text, double width, const PlotCanvas& canvas)
{
    std::string out, line;
    for (const std::string_view word : wordsOf(text)) {
        std::string longer = line.empty() ? std::string(word) : fmt::format("{} {}", line, word);
        if (!line.empty() && canvas.textWidth(longer, PlotFont::Small) > width) {
            out += line + "\n";
            longer = std::string(word);
        }
        line = std::move(longer);
    }
    return out + line;
}

std::string fitting(std::string_view alternatives, double width, const PlotCanvas& canvas)
{
    for (const std::string_view one : itemsOf(alternatives, "\n"))
        if (canvas.textWidth(one, PlotFont::Small) <= width) return std::string(one);
    return {};
}

double legendWidth(const PlotSeries& series, const PlotCanvas& canvas)
{
    const bool line = series.mark == PlotMark::Line || series.mark == PlotMark::Steps;
    return (line ? 28 : 16) + canvas.textWidth(series.title, PlotFont::Small);
}

double PlotRange::share(double value) const
{
    if (std::isinf(value)) return value < 0 ? 0 : 1;
    const auto at = [this](double of) { return scale == PlotScale::Log10 ? std::log10(of) : of; };
    return (at(value) - at(least)) / (at(most) - at(least));
}

PlotLayout::PlotLayout(const Plot& drawn, const PlotBox& box, const PlotCanvas& canvas, PlotMargins atLeast)
    : plot(drawn), whole(box)
{
    for (const PlotSeries& one : plot.series)
        if (one.mark == PlotMark::Bars || one.mark == PlotMark::Levels) m_groups.emplace(one.group, 0);
    std::size_t place = 0;
    for (auto& [group, at] : m_groups) at = place++;
    placeLegend(canvas);
    area = whole;
    const bool unit = plot.up.scale == PlotScale::Time || plot.up.scale == PlotScale::Bytes; // in the title
    area.top += plot.up.title.empty() && !unit && legend.empty() ? (plot.up.aboveRows ? 0 : 10) : 28;
    if (legend.size() > 1) area.top += 17 * (static_cast<double>(legend.size()) - 1);
    if (!plot.groups.empty()) area.top += 38;
    if (plot.across.aboveArea) area.top += 16;
    acrossTitle = wrapped(plot.across.title, whole.width() - 12, canvas);
    const auto lines = static_cast<double>(itemsOf(acrossTitle, "\n").size());
    const double foot = acrossTitle.empty() ? 0 : 18 + (lines - 1) * plotLine;
    area.bottom -= (plot.across.aboveArea || plot.across.hidden ? 4 : 24) + foot;
    findRanges(whole.width() - 70, area.height());
    margins = {std::max(atLeast.left, leftOf(canvas)), std::max(atLeast.right, rightOf(canvas))};
    area.left += margins.left;
    area.right = std::max(area.left + 20, area.right - margins.right);
    area.bottom = std::max(area.top + 20, area.bottom - nameColumns(canvas));
    findRanges(area.width(), area.height());
}

void PlotLayout::placeLegend(const PlotCanvas& canvas)
{
    if (plot.legend != PlotLegend::Top) return;
    std::vector<std::size_t> shown;
    for (std::size_t i = 0; i < plot.series.size(); ++i)
        if (inLegend(plot.series[i])) shown.push_back(i);
    if (plot.series.size() < 2 || shown.empty()) return;
    legend.emplace_back();
    double room = whole.width() - 40 - canvas.textWidth(plot.up.title, PlotFont::Small);
    for (const std::size_t i : shown) {
        const double wide = legendWidth(plot.series[i], canvas) + 16;
        if (wide > room) {
            legend.emplace_back();
            room = whole.width() - 32;
        }
        room -= wide;
        legend.back().push_back(i);
    }
}

double PlotLayout::leftOf(const PlotCanvas& canvas) const
{
    if (plot.up.aboveRows) return 1;
    double wide = widest(plot.up.names, canvas);
    for (const PlotTick& tick : up.ticks) wide = std::max(wide, canvas.textWidth(tick.text, PlotFont::Small));
    for (const PlotRule& rule : plot.rules)
        if (rule.nameOnAxis) wide = std::max(wide, canvas.textWidth(rule.name, PlotFont::Small));
    return std::clamp(wide + besideArea + 4, 40.0, std::max(40.0, whole.width() * mostBeside));
}

double PlotLayout::rightOf(const PlotCanvas& canvas) const
{
    if (plot.up.aboveRows) return 1;
    double wide = plot.up.notes.empty() ? 6 : widest(plot.up.notes, canvas) + 14;
    if (plot.legend == PlotLegend::Right || plot.legend == PlotLegend::LineEnds)
        for (const PlotSeries& one : plot.series)
            if (inLegend(one)) wide = std::max(wide, canvas.textWidth(one.title, PlotFont::Small) + 36);
    return std::clamp(wide + 4, 10.0, std::max(10.0, whole.width() * mostBeside));
}

void PlotLayout::findRanges(double width, double height)
{
    const bool bars = !m_groups.empty();
    const bool places = bars || anyMark(plot, {PlotMark::Cells});
    const bool onlyLines = !places && !anyMark(plot, {PlotMark::Points});
    Extent x, y;
    for (std::size_t i = 0; i < plot.series.size(); ++i) {
        const PlotSeries& one = plot.series[i];
        if (one.clipped) continue;
        for (const PlotPoint& point : one.points) {
            x.add(point.x);
            if (one.mark != PlotMark::Bars) y.add(point.y);
            if (one.mark != PlotMark::Boxes) continue;
            x.add(point.toX);
            y.add(point.toY);
        }
        if (one.mark != PlotMark::Bars) continue;
        y.add(0);
        for (const auto& [from, to] : stack(i)) y.add(to);
    }
    for (const PlotRule& rule : plot.rules) (rule.upright ? x : y).add(rule.at);
    if (std::any_of(plot.series.begin(), plot.series.end(), [](const PlotSeries& one) {
            return one.mark == PlotMark::Bars && !one.points.empty() && one.points.front().y == 0;
        }))
        y.most += 0.08 * (y.most - y.least); // for what is written over the bars
    const auto finish = [&](PlotRange& range, const PlotAxis& axis, Extent extent, bool places, double room, int most,
                            bool roundEnds) {
        if (extent.empty()) extent = {0, 1};
        const bool positive = extent.least >= 0, whole = extent.whole;
        range.scale = axis.scale;
        range.title = axis.title;
        range.ticks.clear();
        if (!axis.names.empty())
            extent = {-0.5, static_cast<double>(axis.names.size()) - 0.5};
        else if (places)
            extent = {extent.least - 0.5, extent.most + 0.5};
        else if (axis.scale == PlotScale::Log10)
            extent = {std::pow(10, std::floor(std::log10(extent.least) - 0.3)),
                      std::pow(10, std::ceil(std::log10(extent.most) + 0.1))};
        else if (room > 0 || extent.most - extent.least < 1e-12)
            extent.widen(room > 0 ? room : 0.5);
        if (positive && !places && axis.names.empty()) extent.least = std::max(extent.least, -0.02 * extent.most);
        if (positive && roundEnds && !places && axis.names.empty()) extent.least = std::max(extent.least, 0.0);
        range.least = axis.least.value_or(extent.least);
        range.most = std::max(axis.most.value_or(extent.most), range.least + 1e-9);
        if (axis.names.empty() && !axis.hidden) nameTicks(range, axis, most, roundEnds, whole);
    };
    finish(across, plot.across, x, places, onlyLines ? 0 : 0.05, std::max(2, static_cast<int>(width / perTickAcross)),
           false);
    finish(up, plot.up, y, anyMark(plot, {PlotMark::Cells}), anyMark(plot, {PlotMark::Points}) ? 0.04 : 0,
           std::max(2, static_cast<int>(height / (height < low ? perTickLow : perTickUp))), true);
}

// Ticks of a range; ends that the axis does not fix move to ticks where `roundEnds`.
void PlotLayout::nameTicks(PlotRange& range, const PlotAxis& axis, int most, bool roundEnds, bool whole)
{
    if (range.scale == PlotScale::Log10) {
        const double from = std::round(std::log10(range.least)), to = std::round(std::log10(range.most));
        for (double decade = from; decade <= to; decade += std::max(1.0, std::ceil((to - from) / most)))
            range.ticks.push_back({std::pow(10, decade), tickText(std::pow(10, decade), {}, range.scale, 1)});
        return;
    }
    const double largest = std::max(std::abs(range.least), std::abs(range.most));
    NumberScale unit;
    if (range.scale == PlotScale::Time) unit = timeScale(largest);
    if (range.scale == PlotScale::Bytes) unit = byteScale(largest);
    if (unit.name.size() > 0) range.title += fmt::format("{}{}", range.title.empty() ? "" : ", ", unit.name);
    RoundStep step = roundStep((range.most - range.least) / unit.size, most);
    if (whole && range.scale == PlotScale::Linear && step.size < 1) step = {1, 1}; // counts have no fractions
    step.size *= unit.size;
    if (roundEnds) {
        // to a tick, unless that leaves much empty
        const double needed = range.most - range.least, below = std::floor(range.least / step.size + 1e-9) * step.size,
                     above = std::ceil(range.most / step.size - 1e-9) * step.size;
        const auto near = [needed](double away) { return away <= mostEmpty * needed; };
        if (!axis.least)
            range.least = near(range.least - below) ? below : std::max(below, range.least - aroundEnds * needed);
        if (!axis.most) range.most = near(above - range.most) ? above : range.most + aroundEnds * needed;
    }
    for (const double value : roundValues(range.least, range.most, step.size))
        range.ticks.push_back({value, tickText(value, step, range.scale, unit.size)});
}

// The names of the places across: all of them, wrapped, or those that have room.
double PlotLayout::nameColumns(const PlotCanvas& canvas)
{
    names.assign(plot.across.hidden ? 0 : plot.across.names.size(), {});
    if (names.empty()) return 0;
    const double slot = area.width() / static_cast<double>(names.size()) - 4;
    long lines = 1;
    bool fit = true;
    for (std::size_t i = 0; i < names.size(); ++i) {
        names[i] = wrapped(plot.across.names[i], slot, canvas);
        for (const std::string_view line : itemsOf(names[i], "\n"))
            fit = fit && canvas.textWidth(line, PlotFont::Small) <= slot;
        lines = std::max<long>(lines, 1 + std::count(names[i].begin(), names[i].end(), '\n'));
    }
    if (fit && lines <= 3) return 13 * static_cast<double>(lines - 1);
    double free = -1e9;
    for (std::size_t i = 0; i < names.size(); ++i) {
        names[i] = plot.across.names[i];
        const double half = canvas.textWidth(names[i], PlotFont::Small) / 2,
                     at = (static_cast<double>(i) + 0.5) * (slot + 4);
        if (at - half < free)
            names[i].clear();
        else
            free = at + half + 5;
    }
    return 0;
}

PlotPlace PlotLayout::place(double x, double y) const
{
    const double high = up.share(y);
    return {area.left + across.share(x) * area.width(),
            area.bottom - (plot.up.downwards ? 1 - high : high) * area.height()};
}

PlotBox PlotLayout::boxOf(const PlotPoint& point, PlotMark mark) const
{
    if (mark == PlotMark::Cells)
        return PlotBox::between(place(point.x - 0.5, point.y - 0.5), place(point.x + 0.5, point.y + 0.5)).grown(-0.5);
    return PlotBox::between(place(point.x, point.y), place(point.toX, point.toY));
}

PlotBox PlotLayout::barOf(const PlotSeries& series, double x, double from, double to) const
{
    const auto groups = static_cast<double>(std::max<std::size_t>(1, m_groups.size()));
    const double slot = place(x + 1, from).x - place(x, from).x;
    const double wide = std::clamp(slot * 0.7 / groups, 1.0, widestBar);
    const auto group = m_groups.find(series.group);
    const double at = group == m_groups.end() ? 0 : static_cast<double>(group->second);
    const double middle = place(x, from).x + (at - (groups - 1) / 2) * wide, half = wide * (groups > 1 ? 0.46 : 0.5);
    return {middle - half, place(x, std::max(from, to)).y, middle + half, place(x, std::min(from, to)).y};
}

std::vector<std::pair<double, double>> PlotLayout::stack(std::size_t index) const
{
    std::map<double, double> below;
    std::vector<std::pair<double, double>> parts;
    for (std::size_t i = 0; i <= index; ++i) {
        const PlotSeries& one = plot.series[i];
        if (one.mark != PlotMark::Bars || one.group != plot.series[index].group) continue;
        for (const PlotPoint& point : one.points) {
            double& from = below[point.x];
            if (i == index) parts.emplace_back(from, from + point.y);
            from += point.y;
        }
    }
    return parts;
}

double PlotLayout::stackTop(int group, double x) const
{
    double top = 0;
    for (const PlotSeries& one : plot.series)
        if (one.mark == PlotMark::Bars && one.group == group)
            for (const PlotPoint& point : one.points) top += point.x == x ? point.y : 0;
    return top;
}

PlotBox PlotLayout::boxOf(const PlotItem& item) const
{
    if (item.point()) return PlotBox::around(place(item.x0, item.y0), 7);
    return PlotBox::between(place(item.x0, item.y0), place(item.x1, item.y1));
}

PlotBox PlotLayout::boxOf(const PlotRule& rule, const PlotCanvas& canvas) const
{
    const double wide = canvas.textWidth(rule.name, PlotFont::Small);
    const PlotPlace at = place(rule.upright ? rule.at : across.least, rule.upright ? up.least : rule.at);
    if (rule.nameOnAxis) return {area.left - 7 - wide, at.y - 7, area.left - 7, at.y + 7};
    if (!rule.upright) return {area.right - 6 - wide, at.y + 2, area.right - 6, at.y + 16};
    const double left = at.x - 4 - wide < area.left ? at.x + 4 : at.x - 4 - wide;
    return {left, area.top + 2, left + wide, area.top + 16};
}

} // namespace stagewright
