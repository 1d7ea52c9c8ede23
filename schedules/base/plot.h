// What is drawn of figures, as a value: series over common axes. The window, the HTML page and the command line's pictures
// draw it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace stagewright {

enum class PlotMark : std::uint8_t {
    Line,
    Steps,  // level to the next point, then up or down
    Points, // each with its name, where there is room
    Bars,   // from 0, on top of those of earlier series at the same place
    Cells,  // squares around whole numbers, with their names inside
};

struct PlotPoint {
    double x = 0;
    double y = 0;
    std::string name = {};
};

struct PlotSeries {
    std::string title;
    std::vector<PlotPoint> points; // finite; of lines and steps ascending in x
    PlotMark mark = PlotMark::Line;
};

struct Plot {
    std::string across, up; // titles of the axes
    std::vector<PlotSeries> series;
    std::vector<std::string> acrossNames = {}, upNames = {}; // of the places 0, 1 …; "": unnamed. Empty: numbers

    bool empty() const { return series.empty(); }
    // Over all points; 0 to 0 if there are none.
    PlotPoint least() const
    {
        return extreme([](double a, double b) { return std::min(a, b); });
    }
    PlotPoint most() const
    {
        return extreme([](double a, double b) { return std::max(a, b); });
    }

private:
    template <typename Better>
    PlotPoint extreme(Better better) const
    {
        PlotPoint out;
        bool first = true;
        for (const PlotSeries& one : series)
            for (const PlotPoint& point : one.points) {
                out = first ? PlotPoint{point.x, point.y} : PlotPoint{better(out.x, point.x), better(out.y, point.y)};
                first = false;
            }
        return out;
    }
};

} // namespace stagewright
