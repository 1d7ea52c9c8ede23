// Where the parts of one plot are: the area of its points, ranges and ticks of both axes, the lines of its legend. Pixels.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "schedules/base/plot.h"
#include "traces/plot/canvas.h"

namespace stagewright {

struct PlotTick {
    double at = 0;
    std::string text; // "": a line without a number
};

struct PlotRange {
    double least = 0, most = 1;
    PlotScale scale = PlotScale::Linear;
    std::string title; // with the unit
    std::vector<PlotTick> ticks;

    double share(double value) const; // 0 at least, 1 at most; infinite values are clamped
};

// Space that the text beside the area takes; plots below each other share it.
struct PlotMargins {
    double left = 0, right = 0;
};

class PlotLayout {
public:
    // `plot` outlives the layout; the canvas only measures text.
    PlotLayout(const Plot& plot, const PlotBox& whole, const PlotCanvas& canvas, PlotMargins least = {});

    const Plot& plot;
    PlotBox whole, area;
    PlotRange across, up;
    PlotMargins margins;
    std::string acrossTitle;                      // in lines that fit
    std::vector<std::vector<std::size_t>> legend; // lines of the legend above the area: series
    std::vector<std::string> names;               // across, wrapped at "\n"; "": no room

    PlotPlace place(double x, double y) const;
    PlotBox boxOf(const PlotPoint& point, PlotMark mark) const; // of cells and boxes
    PlotBox barOf(const PlotSeries& series, double x, double from, double to) const;
    PlotBox boxOf(const PlotItem& item) const;                           // of a place: a square around it
    PlotBox boxOf(const PlotRule& rule, const PlotCanvas& canvas) const; // of its name
    // From where to where the bars of a series are: those below them count.
    std::vector<std::pair<double, double>> stack(std::size_t series) const;
    double stackTop(int group, double x) const;

private:
    void placeLegend(const PlotCanvas& canvas);
    void findRanges(double width, double height);
    void nameTicks(PlotRange& range, const PlotAxis& axis, int most, bool roundEnds, bool whole);
    double leftOf(const PlotCanvas& canvas) const;
    double rightOf(const PlotCanvas& canvas) const;
    double nameColumns(const PlotCanvas& canvas); // returns the height of the names

    std::map<int, std::size_t> m_groups; // of bars, by their place beside each other
};

bool inLegend(const PlotSeries& series);
double legendWidth(const PlotSeries& series, const PlotCanvas& canvas); // mark and title
PlotInk inkOf(const Plot& plot, std::size_t series);
// As many of its letters as have room, with "…".
std::string elided(std::string_view text, double width, const PlotCanvas& canvas, PlotFont font = PlotFont::Small);
// Lines of whole words, joined by "\n".
std::string wrapped(std::string_view text, double width, const PlotCanvas& canvas);
// The first of the alternatives, separated by "\n", that has room; "": none.
std::string fitting(std::string_view alternatives, double width, const PlotCanvas& canvas);

} // namespace stagewright
