#include "traces/plot/plot_files.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "schedules/base/csv_line.h"
#include "traces/plot/drawing.h"
#include "traces/plot/svg_canvas.h"
#include "traces/plot/svg_colours.h"
#include "traces/plot/tikz_canvas.h"

namespace stagewright {
namespace {

constexpr double usualHeight = 560;

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
    TikzCanvas canvas;
    const double high = 0.6 * TikzCanvas::column + usualHeight * (plot.tall - 1); // rows stay as high as elsewhere
    PlotDrawing(plot, {0, 0, TikzCanvas::column, high}, canvas).paint(canvas);
    return fmt::format("% {}\n% {}\n% needs \\usepackage{{tikz}} and \\usetikzlibrary{{patterns}}\n{}", latex(title),
                       latex(caption), canvas.picture());
}

Result<std::string> plotText(const Plot& plot, const std::string& title, const std::string& caption,
                             std::string_view path)
{
    if (path.ends_with(".svg")) return plotPicture(plot, title, caption, 1120, usualHeight * plot.tall);
    if (path.ends_with(".csv")) return plotCsv(plot);
    if (path.ends_with(".tex")) return plotTikz(plot, title, caption);
    return fail(ErrorCode::Usage, fmt::format("'{}' does not say what a plot is written as", path),
                "end the name in .svg, .csv or .tex");
}

} // namespace stagewright
