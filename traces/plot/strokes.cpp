#include "traces/plot/strokes.h"

#include <array>
#include <string>

#include "schedules/base/text.h"
#include "traces/plot/layout.h"

namespace stagewright {

using namespace ink;

void stroke(PlotCanvas& canvas, PlotPlace from, PlotPlace to, const PlotStroke& with)
{
    const std::array places{from, to};
    canvas.line(places, with);
}

void strokeInside(PlotCanvas& canvas, const std::vector<PlotPlace>& places, const PlotBox& box, const PlotStroke& with)
{
    std::vector<PlotPlace> part;
    const auto draw = [&] {
        if (part.size() > 1) canvas.line(part, with);
        part.clear();
    };
    for (std::size_t i = 1; i < places.size(); ++i) {
        const PlotPlace from = places[i - 1], by{places[i].x - from.x, places[i].y - from.y};
        double enter = 0, leave = 1;
        const auto limit = [&](double start, double step, double least, double most) {
            if (step == 0) return start >= least && start <= most;
            const double a = (least - start) / step, b = (most - start) / step;
            enter = std::max(enter, std::min(a, b));
            leave = std::min(leave, std::max(a, b));
            return enter <= leave;
        };
        if (!limit(from.x, by.x, box.left, box.right) || !limit(from.y, by.y, box.top, box.bottom)) {
            draw();
            continue;
        }
        if (part.empty() || enter > 0) {
            draw();
            part.push_back({from.x + enter * by.x, from.y + enter * by.y});
        }
        part.push_back({from.x + leave * by.x, from.y + leave * by.y});
        if (leave < 1) draw();
    }
    draw();
}

void outline(PlotCanvas& canvas, const PlotBox& box, const PlotStroke& with)
{
    const std::array<PlotPlace, 4> corners{
        {{box.left, box.top}, {box.right, box.top}, {box.right, box.bottom}, {box.left, box.bottom}}};
    canvas.polygon(corners, std::nullopt, with);
}

void paintShape(PlotCanvas& canvas, PlotPlace at, PlotShape shape, double r, PlotInk ink)
{
    const bool small = r <= 3; // many: apart from those below them
    const PlotStroke edge{small ? ground : ink, small ? 0.75 : 1.5};
    const auto polygon = [&](std::initializer_list<PlotPlace> offsets) {
        std::vector<PlotPlace> places;
        for (const PlotPlace& by : offsets) places.push_back({at.x + by.x * r, at.y + by.y * r});
        canvas.polygon(places, ink, edge);
    };
    switch (shape) {
    case PlotShape::Disc: return canvas.disc(at, r, ink, edge);
    case PlotShape::Ring: return canvas.disc(at, r, ground, edge);
    case PlotShape::Square: return polygon({{-1, -1}, {1, -1}, {1, 1}, {-1, 1}});
    case PlotShape::Triangle: return polygon({{-1, 1}, {1, 1}, {0, -1}});
    case PlotShape::Diamond: return polygon({{-1, 0}, {0, 1}, {1, 0}, {0, -1}});
    case PlotShape::Cross:
        stroke(canvas, {at.x - r, at.y - r}, {at.x + r, at.y + r}, edge);
        return stroke(canvas, {at.x - r, at.y + r}, {at.x + r, at.y - r}, edge);
    case PlotShape::None: return;
    }
}

void paintParagraph(PlotCanvas& canvas, const PlotBox& box, std::string_view words, PlotInk ink, PlotAlign align)
{
    const std::string broken = wrapped(words, box.width(), canvas);
    const std::vector<std::string_view> lines = itemsOf(broken, "\n");
    const double high = plotLine * static_cast<double>(lines.size());
    double y = (align == PlotAlign::Centre ? box.centre().y - high / 2 : box.top) + plotLine / 2;
    for (const std::string_view line : lines) {
        canvas.text({align == PlotAlign::Centre ? box.centre().x : box.left, y}, line, PlotFont::Small, align, ink);
        y += plotLine;
    }
}

} // namespace stagewright
