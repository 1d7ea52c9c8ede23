// Parts of the planners' pictures.
#pragma once

#include <string>
#include <utility>

#include "schedules/base/plot.h"

namespace stagewright {

// A box over a lane: from x to x, in the middle of a row.
inline PlotPoint laneBox(double row, double from, double to, std::string name, PlotInk ink, double half = 0.38)
{
    PlotPoint point{from, row - half, std::move(name), ink};
    point.toX = to;
    point.toY = row + half;
    return point;
}
inline PlotItem laneItem(double row, double from, double to, std::string text, int column, int id, double half = 0.38)
{
    return {from, to, row - half, row + half, std::move(text), column, static_cast<int>(row), id};
}
// The inks of parts in a row: neighbours differ.
inline PlotInk partInk(std::size_t part)
{
    constexpr PlotHue hues[] = {PlotHue::Forward,       PlotHue::Backward,  PlotHue::Weight,
                                PlotHue::Communication, PlotHue::Optimizer, PlotHue::Secondary};
    return {hues[part % std::size(hues)], part / std::size(hues) % 2 == 0 ? 1.0F : 0.55F};
}
inline Plot nothingPlot(std::string why)
{
    Plot plot;
    plot.nothing = std::move(why);
    return plot;
}
// Over rows with these names, the first uppermost; times across start at zero.
inline Plot lanesPlot(std::string across, std::vector<std::string> rows)
{
    Plot plot{std::move(across), {}, {}};
    plot.up.names = std::move(rows);
    plot.up.downwards = true;
    plot.across.least = 0;
    return plot;
}

} // namespace stagewright
