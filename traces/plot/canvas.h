// PlotCanvas: what a plot is drawn on, such as a QPainter or the text of an SVG. All lengths are pixels, y grows
// downwards.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

#include "schedules/base/plot.h"

namespace stagewright {

struct PlotPlace {
    double x = 0, y = 0;
};

struct PlotBox {
    double left = 0, top = 0, right = 0, bottom = 0;
    double width() const { return right - left; }
    double height() const { return bottom - top; }
    PlotPlace centre() const { return {(left + right) / 2, (top + bottom) / 2}; }
    bool empty() const { return right <= left || bottom <= top; }
    bool contains(PlotPlace at) const { return at.x >= left && at.x <= right && at.y >= top && at.y <= bottom; }
    bool contains(const PlotBox& other) const
    {
        return other.left >= left && other.right <= right && other.top >= top && other.bottom <= bottom;
    }
    bool meets(const PlotBox& other) const
    {
        return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
    }
    PlotBox grown(double by) const { return {left - by, top - by, right + by, bottom + by}; }
    static PlotBox around(PlotPlace at, double radius)
    {
        return {at.x - radius, at.y - radius, at.x + radius, at.y + radius};
    }
    static PlotBox between(PlotPlace a, PlotPlace b)
    {
        return {std::min(a.x, b.x), std::min(a.y, b.y), std::max(a.x, b.x), std::max(a.y, b.y)};
    }
};

enum class PlotFont {
    Small,  // 11
    Strong, // 12, semibold
};
enum class PlotAlign {
    Left,
    Centre,
    Right,
};
struct PlotStroke {
    PlotInk ink;
    double width = 1;
    PlotDash dash = PlotDash::Solid;
};
inline constexpr double plotLine = 15; // the height of a line of small text

class PlotCanvas {
public:
    virtual ~PlotCanvas() = default;
    virtual double textWidth(std::string_view text, PlotFont font) const = 0;

    virtual void line(std::span<const PlotPlace> places, const PlotStroke& stroke) = 0;
    virtual void fill(const PlotBox& box, PlotInk ink) = 0;
    virtual void hatch(const PlotBox& box, PlotInk ink) = 0; // lines that rise to the right
    // Closed; a fill of nothing leaves what is behind it.
    virtual void polygon(std::span<const PlotPlace> places, std::optional<PlotInk> fill, const PlotStroke& stroke) = 0;
    virtual void disc(PlotPlace at, double radius, std::optional<PlotInk> fill, const PlotStroke& stroke) = 0;
    // One line, its middle at at.y.
    virtual void text(PlotPlace at, std::string_view text, PlotFont font, PlotAlign align, PlotInk ink) = 0;
    // What follows is a part of the plot with this name, until endPart(); parts don't nest.
    virtual void beginPart(std::string_view name) = 0;
    virtual void endPart() = 0;
};

} // namespace stagewright
