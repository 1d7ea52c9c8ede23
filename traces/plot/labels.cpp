#include "traces/plot/labels.h"

#include <cmath>

#include "schedules/base/text.h"

namespace stagewright {
namespace {

constexpr double besidePoint = 16; // a name farther from its point has a line to it
constexpr double labelHeight = 14;
constexpr double roomy = 560; // pixels: a narrower plot has the shortest names

double turn(PlotPlace a, PlotPlace b, PlotPlace c) { return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x); }

struct Segment {
    PlotPlace from, to;
    bool meets(const Segment& other) const
    {
        return turn(from, to, other.from) * turn(from, to, other.to) < 0 &&
               turn(other.from, other.to, from) * turn(other.from, other.to, to) < 0;
    }
    bool meets(const PlotBox& box) const
    {
        const PlotPlace corners[] = {
            {box.left, box.top}, {box.right, box.top}, {box.right, box.bottom}, {box.left, box.bottom}};
        if (box.contains(to)) return true;
        for (int i = 0; i < 4; ++i)
            if (meets(Segment{corners[i], corners[(i + 1) % 4]})) return true;
        return false;
    }
};

// The places that are taken.
class Room {
public:
    explicit Room(const PlotBox& inside) : m_inside(inside) {}
    void take(const PlotBox& box) { m_taken.push_back(box); }
    void take(PlotPlace from, PlotPlace to) // a line, in pieces
    {
        const int pieces = std::max(1, static_cast<int>(std::hypot(to.x - from.x, to.y - from.y) / 12));
        const bool straight = from.x == to.x || from.y == to.y;
        for (int i = 0; i < (straight ? 1 : pieces); ++i) {
            const auto at = [&](double share) {
                return PlotPlace{from.x + (to.x - from.x) * share, from.y + (to.y - from.y) * share};
            };
            const double parts = straight ? 1 : pieces;
            take(PlotBox::between(at(i / parts), at((i + 1) / parts)).grown(0.5));
        }
    }
    // A free box for a name at one of the eight places around a point; empty: none.
    PlotBox place(PlotPlace beside, double w, double distance, bool far)
    {
        constexpr double h = labelHeight;
        for (const double away : {distance, distance + 9, distance + 20}) {
            if (away > distance && !far) break;
            const PlotPlace offsets[] = {{away, -h / 2},
                                         {away * 0.7, -h - away * 0.4},
                                         {away * 0.7, away * 0.4},
                                         {-w - away, -h / 2},
                                         {-w - away * 0.7, -h - away * 0.4},
                                         {-w - away * 0.7, away * 0.4},
                                         {-w / 2, -h - away},
                                         {-w / 2, away}};
            for (const PlotPlace& offset : offsets) {
                const PlotBox box{beside.x + offset.x, beside.y + offset.y, beside.x + offset.x + w,
                                  beside.y + offset.y + h};
                const PlotBox wide = box.grown(1);
                if (!m_inside.contains(box) || std::any_of(m_taken.begin(), m_taken.end(),
                                                           [&](const PlotBox& taken) { return taken.meets(wide); }))
                    continue;
                m_taken.push_back(box);
                return box;
            }
        }
        return {};
    }

private:
    PlotBox m_inside;
    std::vector<PlotBox> m_taken;
};

struct Named {
    PlotPlace at;
    std::vector<std::string> names; // longest first
    PlotInk ink;
    int priority = 0;
    double radius = 0;
    bool placed = false;
};

} // namespace

PlotPlace PlotLabel::leaderEnd() const
{
    return {std::clamp(of.x, box.left, box.right), std::clamp(of.y, box.top, box.bottom)};
}

std::vector<PlotLabel> placedLabels(const PlotLayout& layout, const PlotCanvas& canvas, const PlotItem* chosen)
{
    const Plot& plot = layout.plot;
    if (std::none_of(plot.series.begin(), plot.series.end(), [](const PlotSeries& one) {
            return one.mark == PlotMark::Points && one.named &&
                   std::any_of(one.points.begin(), one.points.end(), [](const auto& at) { return !at.name.empty(); });
        }))
        return {};
    Room free(layout.area.grown(-2));
    for (const PlotRule& rule : plot.rules)
        if (!rule.name.empty()) free.take(layout.boxOf(rule, canvas));
    std::vector<Named> points;
    for (std::size_t i = 0; i < plot.series.size(); ++i) {
        const PlotSeries& one = plot.series[i];
        if (one.mark != PlotMark::Points) continue;
        for (const PlotPoint& point : one.points) {
            const double radius = point.shape.value_or(one.shape) == PlotShape::None ? 2 : std::max(5.0, one.size + 1);
            const PlotPlace at = layout.place(point.x, point.y);
            free.take(PlotBox::around(at, radius));
            if (point.name.empty() || !one.named) continue;
            Named named{at, {}, point.ink.value_or(inkOf(plot, i)), one.priority, radius, false};
            for (const std::string_view name : itemsOf(point.name, "\n")) named.names.emplace_back(name);
            if (layout.area.width() < roomy) named.names.erase(named.names.begin(), named.names.end() - 1);
            if (chosen != nullptr && chosen->point() && chosen->x0 == point.x && chosen->y0 == point.y)
                named.priority = -1;
            points.push_back(std::move(named));
        }
    }
    Room open = free; // also over lines
    for (const PlotSeries& one : plot.series) {
        if (one.mark != PlotMark::Line && one.mark != PlotMark::Steps) continue;
        for (std::size_t k = 1; k < one.points.size(); ++k) {
            const PlotPlace from = layout.place(one.points[k - 1].x, one.points[k - 1].y),
                            to = layout.place(one.points[k].x, one.points[k].y);
            if (!std::isfinite(from.y) || !std::isfinite(to.y)) continue;
            const PlotPlace corner{to.x, one.mark == PlotMark::Steps ? from.y : to.y};
            free.take(from, corner);
            if (one.mark == PlotMark::Steps) free.take(corner, to);
        }
    }
    std::vector<PlotLabel> labels;
    const auto widthOf = [&](const std::string& name) { return canvas.textWidth(name, PlotFont::Small) + 2; };
    const auto put = [&](Named& point, const std::string& name, const PlotBox& box) {
        point.placed = true;
        PlotLabel label{box, name, point.at, point.ink, false};
        const PlotPlace end = label.leaderEnd();
        label.leader = std::hypot(end.x - point.at.x, end.y - point.at.y) > besidePoint;
        labels.push_back(std::move(label));
    };
    std::vector<std::size_t> order(points.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return points[a].priority < points[b].priority; });
    for (const std::size_t i : order) {
        Named& point = points[i];
        const bool far = point.priority <= 0;
        for (const std::string& name : point.names) {
            PlotBox box = free.place(point.at, widthOf(name), point.radius + 3, far);
            if (box.empty() && far && &name == &point.names.back()) {
                box = open.place(point.at, widthOf(name), point.radius + 3, true);
                free.take(box);
            }
            if (box.empty()) continue;
            open.take(box);
            put(point, name, box);
            break;
        }
    }
    // In a crowd: farther away, at the end of a line that crosses no name, point or other line.
    std::vector<Segment> leaders;
    for (const std::size_t i : order) {
        Named& point = points[i];
        const std::string& name = point.names.back();
        for (double away = 16; !point.placed && away <= 46; away += 15) {
            Room tried = open;
            const PlotBox box = tried.place(point.at, widthOf(name), away, true);
            if (box.empty()) continue;
            const Segment line{point.at, PlotLabel{box, {}, point.at, {}, false}.leaderEnd()};
            const auto crossed = [&](const auto& other) { return line.meets(other); };
            if (std::any_of(
                    points.begin(), points.end(),
                    [&](const Named& other) { return &other != &point && line.meets(PlotBox::around(other.at, 5)); }) ||
                std::any_of(labels.begin(), labels.end(),
                            [&](const PlotLabel& other) { return line.meets(other.box); }) ||
                std::any_of(leaders.begin(), leaders.end(), crossed))
                continue;
            open = std::move(tried);
            leaders.push_back(line);
            put(point, name, box);
        }
    }
    return labels;
}

} // namespace stagewright
