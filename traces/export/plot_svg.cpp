#include "traces/export/plot_svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

#include <fmt/core.h>

#include "traces/export/timeline_svg.h"

namespace stagewright {
namespace {

constexpr double curveLeft = 64, curveRight = 16, curveTop = 40, curveBottom = 40;
constexpr double letterWidth = 6.4; // about, in the ticks' font
// Their colours in the page's style, and in a picture of its own.
constexpr std::array seriesClasses{"first", "second", "third", "fourth", "fifth", "sixth"};
constexpr std::array seriesColours{"f", "b", "w", "c", "critical", "secondary"};

struct CurveAxis {
    double least = 0, most = 1, step = 1;
    int decimals() const { return std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9))); }
};

// At most `ticks` steps of 1, 2 or 5; both ends are on ticks.
CurveAxis axisOf(double least, double most, int ticks, bool whole)
{
    if (most - least < 1e-12) {
        least -= 0.5;
        most += 0.5;
    }
    const double exact = (most - least) / ticks;
    double step = std::pow(10, std::floor(std::log10(exact)));
    for (const double factor : {1.0, 2.0, 5.0, 10.0})
        if (step * factor >= exact - 1e-12) {
            step *= factor;
            break;
        }
    if (whole) step = std::max(1.0, step);
    return {std::floor(least / step + 1e-9) * step, std::ceil(most / step - 1e-9) * step, step};
}

struct PlotBox {
    double left = 0, right = 0, top = 0, bottom = 0;
};

// Draws the parts of one plot.
class PlotDrawing {
public:
    PlotDrawing(const Plot& plot, double width, double height)
        : m_plot(plot), m_right(width - curveRight), m_bottom(height - curveBottom)
    {
        const PlotPoint least = plot.least(), most = plot.most();
        const bool onlyLines = everyMark({PlotMark::Line}), cells = everyMark({PlotMark::Cells});
        m_across = axisOf(least.x, most.x, 12, onlyLines);
        if (onlyLines) { // the lines fill the width
            m_across.least = least.x;
            m_across.most = std::max(most.x, least.x + 1);
        }
        if (const auto names = plot.acrossNames.size(); names > 0)
            m_across = {-0.5, static_cast<double>(names) - 0.5, 1};
        double top = most.y, low = least.y;
        std::map<double, double> stacks;
        for (const PlotSeries& series : plot.series)
            if (series.mark == PlotMark::Bars)
                for (const PlotPoint& point : series.points) top = std::max(top, stacks[point.x] += point.y);
        if (!stacks.empty()) low = std::min(low, 0.0);
        m_up = axisOf(low, top, 6, false);
        if (cells && !plot.upNames.empty()) m_up = {-0.5, static_cast<double>(plot.upNames.size()) - 0.5, 1};
    }

    std::string axes() const
    {
        std::string out;
        if (m_plot.upNames.empty())
            for (int i = 0; m_up.least + i * m_up.step <= m_up.most + m_up.step * 1e-6; ++i) {
                const double value = m_up.least + i * m_up.step;
                out += fmt::format("<path class=\"grid\" d=\"M{0} {1:.1f}H{2:.1f}\"/>", curveLeft, y(value), m_right);
                out += upTick(value, fmt::format("{:.{}f}", value, m_up.decimals()));
            }
        for (std::size_t i = 0; i < m_plot.upNames.size(); ++i)
            out += upTick(static_cast<double>(i), m_plot.upNames[i]);
        if (m_plot.acrossNames.empty())
            for (double value = std::ceil(m_across.least / m_across.step - 1e-9) * m_across.step;
                 value <= m_across.most + 1e-9; value += m_across.step)
                out += fmt::format("<path class=\"grid\" d=\"M{0:.1f} {1}V{2:.1f}\"/>", x(value), curveTop, m_bottom) +
                       acrossTick(value, fmt::format("{:.{}f}", value + 0.0, m_across.decimals()));
        double free = 0;
        for (std::size_t i = 0; i < m_plot.acrossNames.size(); ++i) { // names that have room
            const std::string& name = m_plot.acrossNames[i];
            const double place = x(static_cast<double>(i)), half = letterWidth / 2 * static_cast<double>(name.size());
            if (name.empty() || place - half < free) continue;
            free = place + half + 4;
            out += acrossTick(static_cast<double>(i), name);
        }
        return out + fmt::format("<text class=\"sub\" x=\"0\" y=\"14\">{}</text><text class=\"sub\" "
                                 "text-anchor=\"end\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                                 escaped(m_plot.up), m_right, m_bottom + 32, escaped(m_plot.across));
    }

    std::string series(std::size_t index)
    {
        const PlotSeries& one = m_plot.series[index];
        switch (one.mark) {
        case PlotMark::Line:
        case PlotMark::Steps: return line(one, classOf(index));
        case PlotMark::Points: return points(one, classOf(index));
        case PlotMark::Bars: return bars(one, classOf(index));
        case PlotMark::Cells: return cells(one, classOf(index));
        }
        return {};
    }

    std::string legend() const
    {
        std::string out;
        if (m_plot.series.size() < 2) return out;
        double at = curveLeft;
        for (std::size_t i = 0; i < m_plot.series.size(); ++i) {
            const PlotSeries& one = m_plot.series[i];
            const bool line = one.mark == PlotMark::Line || one.mark == PlotMark::Steps;
            if (line)
                out += fmt::format("<path class=\"curve {}\" d=\"M{:.1f} 28h22\"/>", classOf(i), at);
            else
                out += fmt::format("<rect class=\"ink {}\" x=\"{:.1f}\" y=\"23\" width=\"11\" height=\"11\"/>",
                                   classOf(i), at + 8);
            out += fmt::format("<text class=\"tick\" x=\"{:.1f}\" y=\"32\">{}</text>\n", at + 28, escaped(one.title));
            at += 28 + 7.0 * static_cast<double>(one.title.size()) + 24;
        }
        return out;
    }

private:
    static const char* classOf(std::size_t index) { return seriesClasses[index % seriesClasses.size()]; }
    bool everyMark(std::initializer_list<PlotMark> marks) const
    {
        return std::all_of(m_plot.series.begin(), m_plot.series.end(), [&](const PlotSeries& one) {
            return std::find(marks.begin(), marks.end(), one.mark) != marks.end();
        });
    }
    double x(double value) const
    {
        return curveLeft + (value - m_across.least) / (m_across.most - m_across.least) * (m_right - curveLeft);
    }
    double y(double value) const
    {
        return m_bottom - (value - m_up.least) / (m_up.most - m_up.least) * (m_bottom - curveTop);
    }
    std::string upTick(double value, const std::string& text) const
    {
        return fmt::format("<text class=\"tick\" text-anchor=\"end\" x=\"{}\" y=\"{:.1f}\">{}</text>\n", curveLeft - 8,
                           y(value) + 4, escaped(text));
    }
    std::string acrossTick(double value, const std::string& text) const
    {
        return fmt::format("<text class=\"tick\" text-anchor=\"middle\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                           x(value), m_bottom + 16, escaped(text));
    }
    std::string dot(const PlotPoint& at, const char* name, const char* kind, const std::string& title) const
    {
        return fmt::format("<circle class=\"{} {}\" cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"3\"><title>{}</title></circle>\n",
                           kind, name, x(at.x), y(at.y), escaped(title));
    }

    std::string line(const PlotSeries& one, const char* name) const
    {
        if (one.points.size() == 1) return dot(one.points[0], name, "curve", one.title);
        std::string path;
        for (std::size_t k = 0; k < one.points.size(); ++k) {
            const PlotPoint& at = one.points[k];
            if (k > 0 && one.mark == PlotMark::Steps)
                path += fmt::format("L{:.2f} {:.2f}", x(at.x), y(one.points[k - 1].y));
            path += fmt::format("{}{:.2f} {:.2f}", k == 0 ? "M" : "L", x(at.x), y(at.y));
        }
        return fmt::format("<path class=\"curve {}\" d=\"{}\"><title>{}</title></path>\n", name, path,
                           escaped(one.title));
    }

    // Dots, each with its name beside it where no earlier name is.
    std::string points(const PlotSeries& one, const char* name)
    {
        std::string out;
        for (const PlotPoint& at : one.points) {
            out += dot(at, name, "ink", at.name.empty() ? one.title : at.name);
            if (at.name.empty()) continue;
            const double wide = letterWidth * static_cast<double>(at.name.size());
            for (const auto& [across, down] :
                 {std::pair(7.0, 4.0), std::pair(-7 - wide, 4.0), std::pair(-wide / 2, -8.0),
                  std::pair(-wide / 2, 17.0), std::pair(7.0, -9.0), std::pair(7.0, 18.0)}) {
                const double left = x(at.x) + across, base = y(at.y) + down;
                const PlotBox box{left, left + wide, base - 10, base + 3};
                if (box.left < curveLeft || box.right > m_right || !isFree(box)) continue;
                m_taken.push_back(box);
                out += fmt::format("<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", left, base,
                                   escaped(at.name));
                break;
            }
        }
        return out;
    }
    bool isFree(const PlotBox& box) const
    {
        return std::none_of(m_taken.begin(), m_taken.end(), [&box](const PlotBox& other) {
            return box.left < other.right && other.left < box.right && box.top < other.bottom && other.top < box.bottom;
        });
    }

    std::string bars(const PlotSeries& one, const char* name)
    {
        const double wide = std::clamp((x(1) - x(0)) * 0.8, 1.0, 90.0);
        std::string out;
        for (const PlotPoint& at : one.points) {
            double& below = m_stacks[at.x];
            out += rectangle(x(at.x) - wide / 2, y(below + at.y), wide, y(below) - y(below + at.y), name, one.title);
            below += at.y;
        }
        return out;
    }

    std::string cells(const PlotSeries& one, const char* name) const
    {
        std::string squares, names; // pale enough for the names on them
        for (const PlotPoint& at : one.points) {
            squares +=
                rectangle(x(at.x - 0.5) + 0.5, y(at.y + 0.5) + 0.5, x(1) - x(0) - 1, y(0) - y(1) - 1, name, one.title);
            names += fmt::format("<text class=\"mark\" text-anchor=\"middle\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                                 x(at.x), y(at.y) + 4, escaped(at.name));
        }
        return "<g fill-opacity=\"0.55\">\n" + squares + "</g>\n" + names;
    }
    static std::string rectangle(double left, double top, double wide, double high, const char* name,
                                 const std::string& title)
    {
        return fmt::format("<rect class=\"ink {}\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" "
                           "height=\"{:.2f}\"><title>{}</title></rect>\n",
                           name, left, top, wide, high, escaped(title));
    }

    const Plot& m_plot;
    double m_right, m_bottom;
    CurveAxis m_across, m_up;
    std::map<double, double> m_stacks; // by place across: how high its bars are
    std::vector<PlotBox> m_taken;      // by names
};

std::string drawn(const Plot& plot, double width, double height)
{
    PlotDrawing drawing(plot, width, height);
    std::string out = drawing.axes();
    for (std::size_t i = 0; i < plot.series.size(); ++i) out += drawing.series(i);
    return out + drawing.legend();
}

void replaceAll(std::string& text, const std::string& from, const std::string& to)
{
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
}

// With each class' appearance in its place.
std::string withoutClasses(std::string svg)
{
    for (const auto& [name, colour] : {std::pair("tick", "secondary"), std::pair("sub", "secondary"),
                                       std::pair("mark", "text"), std::pair("rank", "text")})
        replaceAll(svg, fmt::format("class=\"{}\"", name), fmt::format("fill=\"{}\"", lightColour(colour)));
    replaceAll(svg, "class=\"grid\"", fmt::format("fill=\"none\" stroke=\"{}\"", lightColour("grid")));
    for (std::size_t i = 0; i < seriesClasses.size(); ++i) {
        const std::string_view colour = lightColour(seriesColours[i]);
        replaceAll(svg, fmt::format("class=\"ink {}\"", seriesClasses[i]),
                   fmt::format("fill=\"{}\" stroke=\"none\"", colour));
        replaceAll(svg, fmt::format("class=\"curve {}\"", seriesClasses[i]),
                   fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"2\"", colour) +
                       (i == 1 ? " stroke-dasharray=\"7 4\"" : ""));
    }
    return svg;
}

} // namespace

std::string plotSvg(const Plot& plot, const std::string& title, double width, double height)
{
    if (plot.empty()) return {};
    return fmt::format(
               "<svg class=\"sw\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\"><title>{}</title>\n",
               width, height, escaped(title), escaped(title)) +
           drawn(plot, width, height) + "</svg>\n";
}

std::string plotPicture(const Plot& plot, const std::string& title, const std::string& caption)
{
    constexpr double width = 1120, height = 560, head = 40, foot = 34, margin = 16;
    return withoutClasses(
        fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
                    "font-family=\"Inter, Helvetica, Arial, sans-serif\" font-size=\"11\">\n"
                    "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n"
                    "<text class=\"rank\" font-size=\"15\" font-weight=\"600\" x=\"{2}\" y=\"26\">{3}</text>\n"
                    "<g transform=\"translate({2} {4})\">\n{5}</g>\n"
                    "<text class=\"sub\" x=\"{2}\" y=\"{6}\">{7}</text>\n</svg>\n",
                    width + 2 * margin, height + head + foot, margin, escaped(title), head, drawn(plot, width, height),
                    height + head + 20, escaped(caption)));
}

} // namespace stagewright
