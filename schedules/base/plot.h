// A plot as a value: series over two axes, what lies across them, and what can be pointed at. traces/plot draws it on any
// canvas, so that the window, HTML pages, lessons and the command line's pictures show the same one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stagewright {

// What something is painted like; a theme or a style sheet has the colours.
enum class PlotHue : std::uint8_t {
    Text,
    Secondary,
    Faint,
    Grid,
    Separator,
    Ground, // behind everything
    Accent,
    Critical,
    Better,
    Worse,
    Idle,
    IdleHatch,
    Memory,
    Forward, // the classes of ops, as on the timeline
    Backward,
    Weight,
    Communication,
    Optimizer,
    Delay,
};
struct PlotInk {
    PlotHue hue = PlotHue::Accent;
    float strength = 1; // the rest is ground
    bool label = false; // readable on that ink, instead of the ink itself
    bool operator==(const PlotInk&) const = default;
    PlotInk forLabel() const { return {hue, strength, true}; }
};
// The ink of the n-th of a few series: distinct under colour-vision deficiency, then greys.
inline PlotInk seriesInk(std::size_t index)
{
    constexpr PlotHue hues[] = {PlotHue::Forward,  PlotHue::Backward,  PlotHue::Weight,    PlotHue::Communication,
                                PlotHue::Critical, PlotHue::Secondary, PlotHue::Optimizer, PlotHue::Faint};
    return {hues[index % std::size(hues)]};
}

enum class PlotMark : std::uint8_t {
    Line,   // interrupted where y is not a number
    Steps,  // level to the next point, then up or down
    Points, // each with its name, where there is room
    Bars,   // from 0; those of a group on top of each other, groups beside each other
    Levels, // a short line across the bar of its group; hatched: what of its stack is above
    Cells,  // squares around whole numbers, with their names inside
    Boxes,  // from a point to its `toX`, `toY`, with their names inside
};
enum class PlotDash : std::uint8_t {
    Solid,
    Dash,
    DashDot,
    Dot,
};
enum class PlotShape : std::uint8_t {
    Disc,
    Ring, // also: boxes as outlines
    Square,
    Cross,
    Triangle,
    Diamond,
    None, // only the name
};

struct PlotPoint {
    double x = 0;
    double y = 0;
    std::string name = {};
    std::optional<PlotInk> ink = {}; // instead of the series'
    std::optional<PlotShape> shape = {};
    double toX = 0, toY = 0; // of boxes
};

struct PlotSeries {
    std::string title;             // "": not in the legend
    std::vector<PlotPoint> points; // finite, or y NaN; of lines and steps ascending in x
    PlotMark mark = PlotMark::Line;
    std::optional<PlotInk> ink = {};   // none: by its place among the series
    std::optional<PlotDash> dash = {}; // none: the second line dashed, the others solid
    PlotShape shape = PlotShape::Disc;
    double size = 0;      // pixels: width of a line, radius of a point; 0: usual
    bool dots = false;    // on the points of a line
    bool toEdge = false;  // the last level of steps goes on to the edge
    bool clipped = false; // lines: the axes don't reach as far for it
    bool hatched = false; // boxes and bars
    bool named = true;    // points: their names are written where there is room
    int group = 0;        // of bars
    int priority = 0;     // of names: smaller ones are placed first and may stand farther away
};

enum class PlotScale : std::uint8_t {
    Linear,
    Log10, // values above 0
    Share, // 0.25 is 25 %
    Time,  // nanoseconds; the title gets the unit
    Bytes, // likewise
};
struct PlotAxis {
    std::string title;
    std::vector<std::string> names; // of the places 0, 1 …; "": unnamed. Empty: numbers
    std::vector<std::string> notes; // across axis: none; up: at the other end of each place's row
    PlotScale scale = PlotScale::Linear;
    std::optional<double> least, most; // instead of what the points need
    bool downwards = false;            // up: place 0 is the uppermost
    bool aboveArea = false;            // across: the names are above
    bool hidden = false;               // across: no numbers, no names
    bool aboveRows = false;            // up: names at the left above their boxes, and the boxes' own at the right
    bool broken = false;               // across: it does not start at zero, which boxes from its start show

    PlotAxis() = default;
    PlotAxis(std::string text) : title(std::move(text)) {}
    PlotAxis(const char* text) : title(text) {}
};

// A line across the whole area.
struct PlotRule {
    double at = 0;
    bool upright = false;
    std::string name = {}; // beside it
    PlotInk ink = {PlotHue::Critical};
    PlotDash dash = PlotDash::Dash;
    bool nameOnAxis = false; // instead of beside it
};
// A heading over a range of places.
struct PlotGroup {
    double from = 0, to = 0;
    std::string title, note;
    PlotInk noteInk = {PlotHue::Secondary};
};
// What can be pointed at, chosen and read aloud: a place, or an area; infinite ends are those of the axes. The keys move
// from column to column and from row to row.
struct PlotItem {
    double x0 = 0, x1 = 0, y0 = 0, y1 = 0;
    std::string text = {}; // sentences
    int column = 0, row = 0;
    int id = 0; // whatever it is to the plot's maker

    bool point() const { return x0 == x1 && y0 == y1; }
    static PlotItem at(double x, double y, std::string text, int column, int row, int id = 0)
    {
        return {x, x, y, y, std::move(text), column, row, id};
    }
    static PlotItem cell(int column, int row, std::string text, int id = 0)
    {
        return {column - 0.5, column + 0.5, row - 0.5, row + 0.5, std::move(text), column, row, id};
    }
    static PlotItem band(double x0, double x1, std::string text, int column, int id = 0)
    {
        constexpr double all = std::numeric_limits<double>::infinity();
        return {x0, x1, -all, all, std::move(text), column, 0, id};
    }
};
enum class PlotLegend : std::uint8_t {
    Top, // where there is more than one series
    Right,
    LineEnds, // names at the ends of the lines
    None,
};

struct Plot {
    PlotAxis across, up;
    std::vector<PlotSeries> series;
    std::vector<PlotRule> rules = {};
    std::vector<PlotGroup> groups = {};
    std::vector<PlotItem> items = {};
    std::string title = {};
    std::string nothing = {}; // what is written where no series has points
    PlotLegend legend = PlotLegend::Top;
    bool saysChoice = false;      // the text of the chosen item is part of the picture
    double share = 1;             // of the height, beside those below
    double tall = 1;              // the height of a picture of it, in that of a usual one
    std::vector<Plot> below = {}; // over the same width

    bool empty() const
    {
        return std::all_of(series.begin(), series.end(), [](const PlotSeries& one) { return one.points.empty(); }) &&
               std::all_of(below.begin(), below.end(), [](const Plot& plot) { return plot.empty(); });
    }
};

} // namespace stagewright
