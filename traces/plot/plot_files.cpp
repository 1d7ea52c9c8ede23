#include "traces/plot/plot_files.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "schedules/base/csv_line.h"
#include "traces/plot/drawing.h"
#include "traces/plot/svg_canvas.h"
#include "traces/plot/svg_colours.h"

namespace stagewright {
namespace {

std::string drawn(const Plot& plot, double width, double height, SvgCanvas::Colours colours)
{
    SvgCanvas canvas(colours);
    PlotDrawing(plot, {0, 0, width, height}, canvas).paint(canvas);
    return canvas.elements();
}

std::string valueOf(double value, const PlotAxis& axis)
{
    const double place = std::round(value);
    if (place == value && place >= 0 && place < static_cast<double>(axis.names.size()))
        return axis.names[static_cast<std::size_t>(place)];
    return std::isfinite(value) ? fmt::format("{}", value) : std::string();
}

std::string firstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

void addRows(std::string& out, const Plot& plot)
{
    for (const PlotSeries& one : plot.series)
        for (const PlotPoint& point : one.points) {
            const bool box = one.mark == PlotMark::Boxes;
            out += csvLine({plot.up.title, one.title, valueOf(point.x, plot.across), valueOf(point.y, plot.up),
                            firstLine(point.name), box ? fmt::format("{}", point.toX) : "",
                            box ? fmt::format("{}", point.toY) : ""});
        }
    for (const Plot& below : plot.below) addRows(out, below);
}

std::string latex(std::string_view text)
{
    std::string out;
    for (const char c : text) {
        if (std::string_view("&%$#_{}").find(c) != std::string_view::npos) out += '\\';
        if (c == '\\')
            out += "\\textbackslash{}";
        else if (c == '~' || c == '^')
            out += fmt::format("\\{}{{}}", c);
        else
            out += c;
    }
    return out;
}

std::string nameList(const std::vector<std::string>& names)
{
    std::string out;
    for (const std::string& name : names) out += fmt::format("{}{{{}}}", out.empty() ? "" : ",", latex(name));
    return out;
}

// Options of one axis of pgfplots; `letter` is x or y.
std::string axisOptions(const PlotAxis& axis, char letter)
{
    std::string out = fmt::format("  {}label={{{}}}", letter, latex(axis.title));
    if (axis.scale == PlotScale::Log10) out += fmt::format(", {}mode=log", letter);
    if (axis.least) out += fmt::format(", {}min={}", letter, *axis.least);
    if (axis.most) out += fmt::format(", {}max={}", letter, *axis.most);
    if (axis.downwards) out += fmt::format(", {} dir=reverse", letter);
    if (!axis.names.empty()) {
        out += fmt::format(", {0}tick={{0,...,{1}}}, {0}ticklabels={{{2}}}", letter, axis.names.size() - 1,
                           nameList(axis.names));
        if (letter == 'x') out += ", xticklabel style={rotate=45, anchor=east}";
    }
    return out + ",\n";
}

std::string tikzSeries(const Plot& plot, std::size_t index)
{
    const PlotSeries& one = plot.series[index];
    const std::string colour = lightColour(inkOf(plot, index)).substr(1);
    const std::string hex =
        colour.size() == 3 ? fmt::format("{0}{0}{1}{1}{2}{2}", colour[0], colour[1], colour[2]) : colour;
    std::string out = fmt::format("  \\definecolor{{s{}}}{{HTML}}{{{}}}\n", index, hex);
    const auto coordinates = [&] {
        std::string list;
        for (const PlotPoint& point : one.points)
            list += std::isfinite(point.y) ? fmt::format(" ({},{})", point.x, point.y) : "\n  ";
        return list;
    };
    const char* options = one.mark == PlotMark::Steps    ? "const plot, thick"
                          : one.mark == PlotMark::Line   ? "thick"
                          : one.mark == PlotMark::Points ? "only marks, mark size=1.6pt"
                          : one.mark == PlotMark::Levels ? "only marks, mark=-, mark size=4pt, thick"
                          : one.mark == PlotMark::Cells  ? "only marks, mark=square*, mark size=5pt"
                                                         : "ybar, fill, draw=none";
    if (one.mark == PlotMark::Boxes)
        for (const PlotPoint& point : one.points)
            out += fmt::format("  \\fill[s{}] (axis cs:{},{}) rectangle (axis cs:{},{});\n", index, point.x, point.y,
                               point.toX, point.toY);
    else
        out += fmt::format("  \\addplot+[s{}, {}] coordinates {{{} }};\n", index, options, coordinates());
    if (!one.title.empty() && one.mark != PlotMark::Boxes)
        out += fmt::format("  \\addlegendentry{{{}}}\n", latex(one.title));
    if (one.mark == PlotMark::Points)
        for (const PlotPoint& point : one.points)
            if (!point.name.empty())
                out += fmt::format("  \\node[right, font=\\tiny] at (axis cs:{},{}) {{{}}};\n", point.x, point.y,
                                   latex(firstLine(point.name)));
    return out;
}

std::string tikzAxis(const Plot& plot)
{
    const bool stacked = std::any_of(plot.series.begin(), plot.series.end(),
                                     [](const PlotSeries& one) { return one.mark == PlotMark::Bars; });
    std::size_t longest = 1;
    for (const PlotSeries& one : plot.series) longest = std::max(longest, one.title.size());
    std::string out = "\\begin{axis}[width=\\linewidth, height=0.6\\linewidth, mark options={solid},\n";
    // Above the data, as many names side by side as a line holds.
    out += fmt::format("  legend style={{at={{(0.5,1.02)}}, anchor=south, legend columns={}, draw=none}},\n"
                       "  legend cell align=left,\n",
                       std::clamp<std::size_t>(72 / (longest + 8), 1, 4));
    if (stacked) out += "  ybar stacked,\n";
    out += axisOptions(plot.across, 'x') + axisOptions(plot.up, 'y') + "]\n";
    for (std::size_t i = 0; i < plot.series.size(); ++i)
        if (!plot.series[i].points.empty()) out += tikzSeries(plot, i);
    for (const PlotRule& rule : plot.rules)
        out += rule.upright ? fmt::format("  \\draw[dashed] ({{axis cs:{0},0}} |- {{rel axis cs:0,0}}) -- ({{axis "
                                          "cs:{0},0}} |- {{rel axis cs:0,1}});\n",
                                          rule.at)
                            : fmt::format("  \\draw[dashed] ({{rel axis cs:0,0}} |- {{axis cs:0,{0}}}) -- ({{rel axis "
                                          "cs:1,0}} |- {{axis cs:0,{0}}});\n",
                                          rule.at);
    return out + "\\end{axis}\n";
}

} // namespace

std::string plotSvg(const Plot& plot, const std::string& title, double width, double height)
{
    if (plot.empty()) return {};
    return fmt::format(
               "<svg class=\"sw\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\"><title>{}</title>\n",
               width, height, escaped(title), escaped(title)) +
           drawn(plot, width, height, SvgCanvas::Colours::OfThePage) + "</svg>\n";
}

std::string plotPicture(const Plot& plot, const std::string& title, const std::string& caption, double width,
                        double height)
{
    constexpr double margin = 16;
    const double head = title.empty() ? 0 : 40, foot = caption.empty() ? 0 : 34;
    const auto line = [](double y, const char* size, const char* colour, const std::string& text) {
        return text.empty() ? std::string()
                            : fmt::format("<text x=\"16\" y=\"{}\"{} fill=\"{}\">{}</text>\n", y, size,
                                          lightColour(colour), escaped(text));
    };
    return fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
                       "font-family=\"Inter, Helvetica, Arial, sans-serif\" font-size=\"11\">\n"
                       "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n{2}"
                       "<g transform=\"translate({3} {4})\">\n{5}</g>\n{6}</svg>\n",
                       width + 2 * margin, height + head + foot,
                       line(26, " font-size=\"15\" font-weight=\"600\"", "text", title), margin, head,
                       drawn(plot, width, height, SvgCanvas::Colours::Light),
                       line(height + head + 20, "", "secondary", caption));
}

std::string plotCsv(const Plot& plot)
{
    std::string out = csvLine({"plot", "series", "x", "y", "name", "to_x", "to_y"});
    addRows(out, plot);
    return out;
}

std::string plotTikz(const Plot& plot, const std::string& title, const std::string& caption)
{
    std::string out = fmt::format("% {}\n% {}\n% needs \\usepackage{{pgfplots,xcolor}} and "
                                  "\\pgfplotsset{{compat=1.18}}\n\\begin{{tikzpicture}}\n",
                                  title, caption);
    out += tikzAxis(plot);
    for (const Plot& below : plot.below) out += "\\end{tikzpicture}\n\n\\begin{tikzpicture}\n" + tikzAxis(below);
    return out + "\\end{tikzpicture}\n";
}

Result<std::string> plotText(const Plot& plot, const std::string& title, const std::string& caption,
                             std::string_view path)
{
    if (path.ends_with(".svg")) return plotPicture(plot, title, caption, 1120, 560 * plot.tall);
    if (path.ends_with(".csv")) return plotCsv(plot);
    if (path.ends_with(".tex")) return plotTikz(plot, title, caption);
    return fail(ErrorCode::Usage, fmt::format("'{}' does not say what a plot is written as", path),
                "end the name in .svg, .csv or .tex");
}

} // namespace stagewright
