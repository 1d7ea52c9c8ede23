#include "traces/plot/panel_painter.h"

#include <cmath>
#include <set>

#include "schedules/base/text.h"
#include "traces/plot/strokes.h"

namespace stagewright {
namespace {

using namespace ink;

constexpr double inside = 3;            // of a name to the sides of its cell, box or bar
constexpr std::size_t mostApart = 1000; // points of a series that are all painted

double sharp(double pixel) { return std::round(pixel) + 0.5; }

class PanelPainter {
public:
    PanelPainter(const PlotLayout& layout, const std::vector<PlotLabel>& labels, PlotCanvas& canvas)
        : m(layout), m_plot(layout.plot), m_labels(labels), m_canvas(canvas)
    {
    }

    void paint() const
    {
        titles();
        if (!m_plot.empty()) {
            ticks();
            names();
        }
        groups();
        for (std::size_t i = 0; i < m_plot.series.size(); ++i)
            if (!isMark(i, PlotMark::Points)) series(i);
        frame();
        rules();
        for (const PlotLabel& label : m_labels)
            if (label.leader) stroke(m_canvas, label.of, label.leaderEnd(), {faint});
        for (std::size_t i = 0; i < m_plot.series.size(); ++i)
            if (isMark(i, PlotMark::Points)) series(i);
        for (const PlotLabel& label : m_labels) {
            m_canvas.fill(label.box, {PlotHue::Ground, 0.85F}); // so that lines don't cross it out
            text({label.box.left + 1, label.box.centre().y}, label.text, nameInk(label.ink));
        }
        if (m_plot.legend == PlotLegend::LineEnds) lineEnds();
        if (m_plot.legend == PlotLegend::Right) legendBeside();
        if (m_plot.empty() && !m_plot.nothing.empty())
            paintParagraph(m_canvas, m.area.grown(-8), m_plot.nothing, secondary, PlotAlign::Centre);
    }

private:
    bool isMark(std::size_t series, PlotMark mark) const { return m_plot.series[series].mark == mark; }
    void text(PlotPlace at, std::string_view words, PlotInk ink, PlotAlign align = PlotAlign::Left,
              PlotFont font = PlotFont::Small) const
    {
        if (!words.empty()) m_canvas.text(at, words, font, align, ink);
    }
    // Names of points are in text colours: their marks have the series'.
    static PlotInk nameInk(PlotInk of)
    {
        return of.hue == PlotHue::Faint || of.hue == PlotHue::Secondary || of.hue == PlotHue::Critical ? of : textInk;
    }

    void titles() const
    {
        text({m.whole.left + 8, m.whole.top + 13}, m.up.title, secondary);
        const auto lines = itemsOf(m.acrossTitle, "\n");
        double foot = m.whole.bottom - 11 - plotLine * (static_cast<double>(lines.size()) - 1);
        for (const std::string_view line : lines) { // under the area, unless it is wider
            const bool fits = m_canvas.textWidth(line, PlotFont::Small) <= m.area.right - m.whole.left;
            text({fits ? m.area.right : m.whole.right - 4, foot}, line, secondary, PlotAlign::Right);
            foot += plotLine;
        }
        double y = m.whole.top + 13;
        for (const auto& line : m.legend) {
            double x = m.whole.right - 16;
            for (const std::size_t i : line) x -= legendWidth(m_plot.series[i], m_canvas) + 16;
            for (const std::size_t i : line) {
                x += 16;
                legendEntry({x, y}, i);
                x += legendWidth(m_plot.series[i], m_canvas);
            }
            y += 17;
        }
    }

    void ticks() const
    {
        for (const PlotTick& tick : m.up.ticks) {
            const double y = sharp(m.place(m.across.least, tick.at).y);
            stroke(m_canvas, {m.area.left, y}, {m.area.right, y}, {grid});
            text({m.area.left - 7, y}, tick.text, secondary, PlotAlign::Right);
        }
        double free = -1e9;
        for (const PlotTick& tick : m.across.ticks) {
            const double x = sharp(m.place(tick.at, m.up.least).x);
            stroke(m_canvas, {x, m.area.top}, {x, m.area.bottom}, {grid});
            const double half = m_canvas.textWidth(tick.text, PlotFont::Small) / 2;
            if (x - half < free || x + half > m.whole.right) continue;
            free = x + half + 8;
            text({x, m.area.bottom + 11}, tick.text, secondary, PlotAlign::Centre);
        }
    }

    double rowTop(double row) const { return m.place(m.across.least, row - 0.5).y; }

    void names() const
    {
        for (std::size_t i = 0; i < m.names.size(); ++i) {
            double y = m_plot.across.aboveArea ? m.area.top - 9 : m.area.bottom + 11;
            for (const std::string_view line : itemsOf(m.names[i], "\n")) {
                text({m.place(static_cast<double>(i), m.up.least).x, y}, line, secondary, PlotAlign::Centre);
                y += 13;
            }
        }
        const std::size_t rows = m_plot.up.names.size();
        if (m_plot.up.aboveRows) {
            for (std::size_t i = 0; i < rows; ++i)
                text({m.area.left, rowTop(static_cast<double>(i)) + 8},
                     elided(m_plot.up.names[i], m.area.width() * 0.72, m_canvas), secondary);
            return;
        }
        const auto each = static_cast<std::size_t>( // every how many rows are named
            std::max(1.0, std::ceil(12 * static_cast<double>(rows) / std::max(1.0, m.area.height()))));
        for (std::size_t i = 0; i < rows; i += each) {
            const double y = m.place(m.across.least, static_cast<double>(i)).y;
            text({m.area.left - 7, y}, elided(m_plot.up.names[i], m.area.left - m.whole.left - 10.5, m_canvas),
                 secondary, PlotAlign::Right);
            if (i < m_plot.up.notes.size()) text({m.area.right + 10, y}, m_plot.up.notes[i], textInk);
        }
    }

    void groups() const
    {
        for (const PlotGroup& group : m_plot.groups) {
            const double left = m.place(group.from, m.up.least).x, wide = m.place(group.to, m.up.least).x - left;
            text({left, m.area.top - 30}, elided(group.title, wide, m_canvas, PlotFont::Strong), textInk,
                 PlotAlign::Left, PlotFont::Strong);
            if (m_canvas.textWidth(group.note, PlotFont::Small) <= 1.6 * wide)
                text({left, m.area.top - 12}, elided(group.note, wide, m_canvas), group.noteInk);
            else // a reason, over the empty part
                paintParagraph(m_canvas, {left, m.area.top - 18, left + wide, m.area.bottom}, group.note, group.noteInk,
                               PlotAlign::Left);
        }
    }

    void frame() const
    {
        const bool cells = std::any_of(m_plot.series.begin(), m_plot.series.end(), [](const PlotSeries& one) {
            return one.mark == PlotMark::Cells || one.mark == PlotMark::Boxes;
        });
        if (cells) return;
        outline(m_canvas, {sharp(m.area.left), sharp(m.area.top), sharp(m.area.right), sharp(m.area.bottom)},
                {separator});
    }

    void rules() const
    {
        for (const PlotRule& rule : m_plot.rules) {
            const PlotPlace at = m.place(rule.upright ? rule.at : m.across.least, rule.upright ? m.up.least : rule.at);
            if (rule.upright)
                stroke(m_canvas, {at.x, m.area.top}, {at.x, m.area.bottom}, {rule.ink, 1.25, rule.dash});
            else
                stroke(m_canvas, {m.area.left, at.y}, {m.area.right, at.y}, {rule.ink, 1.25, rule.dash});
            const PlotBox box = m.boxOf(rule, m_canvas);
            if (rule.nameOnAxis && !rule.name.empty()) m_canvas.fill(box, ground); // over a number
            text({box.left, box.centre().y}, rule.name, rule.ink);
        }
    }

    void legendEntry(PlotPlace at, std::size_t i) const
    {
        const PlotSeries& one = m_plot.series[i];
        const PlotInk ink = inkOf(m_plot, i);
        const double text_ = legendWidth(one, m_canvas) - m_canvas.textWidth(one.title, PlotFont::Small);
        const PlotBox swatch{at.x, at.y - 5.5, at.x + 11, at.y + 5.5};
        switch (one.mark) {
        case PlotMark::Line:
        case PlotMark::Steps: stroke(m_canvas, {at.x, at.y}, {at.x + 22, at.y}, lineOf(i)); break;
        case PlotMark::Levels: stroke(m_canvas, {at.x, at.y}, {at.x + 11, at.y}, {ink, 2}); break;
        case PlotMark::Points: paintShape(m_canvas, swatch.centre(), one.shape, 3.5, ink); break;
        default:
            if (one.shape == PlotShape::Ring)
                outline(m_canvas, swatch, {ink, 1.5});
            else if (!one.hatched)
                m_canvas.fill(swatch, ink);
            else
                m_canvas.hatch(swatch, ink);
            if (one.mark == PlotMark::Cells && !one.points.empty()) // the letter of the cells
                text(swatch.centre(), fitting(one.points.front().name, 11, m_canvas), ink.forLabel(),
                     PlotAlign::Centre);
        }
        text({at.x + text_, at.y}, one.title, textInk);
    }

    // The uppermost part of a stack comes first.
    void legendBeside() const
    {
        double y = m.area.top + 8;
        const std::size_t count = m_plot.series.size();
        for (std::size_t k = 0; k < count && y < m.area.bottom + 20; ++k) {
            const std::size_t i = isMark(0, PlotMark::Bars) ? count - 1 - k : k;
            if (!inLegend(m_plot.series[i])) continue;
            legendEntry({m.area.right + 12, y}, i);
            y += 17;
        }
    }

    // In the order of the lines' ends, with a line to a name that had to move.
    void lineEnds() const
    {
        struct End {
            PlotPlace at;
            std::size_t series;
            double y; // of its name
        };
        std::vector<End> ends;
        for (std::size_t i = 0; i < m_plot.series.size(); ++i) {
            const auto& points = m_plot.series[i].points;
            const auto last = std::find_if(points.rbegin(), points.rend(),
                                           [](const PlotPoint& point) { return std::isfinite(point.y); });
            if (last == points.rend() || m_plot.series[i].title.empty()) continue;
            const PlotPlace at = m.place(last->x, last->y);
            ends.push_back({at, i, at.y});
        }
        std::stable_sort(ends.begin(), ends.end(), [](const End& a, const End& b) { return a.at.y < b.at.y; });
        constexpr double high = 14;
        for (std::size_t i = 1; i < ends.size(); ++i) ends[i].y = std::max(ends[i].y, ends[i - 1].y + high);
        double lowest = m.whole.bottom - high;
        for (std::size_t i = ends.size(); i-- > 0; lowest = ends[i].y - high) ends[i].y = std::min(ends[i].y, lowest);
        for (const End& end : ends) {
            const double left = m.area.right + 14;
            stroke(m_canvas, end.at, {left - 3, end.y}, {inkOf(m_plot, end.series)});
            text({left, end.y}, elided(m_plot.series[end.series].title, m.whole.right - left - 2, m_canvas), textInk);
        }
    }

    PlotStroke lineOf(std::size_t i) const
    {
        const PlotSeries& one = m_plot.series[i];
        return {inkOf(m_plot, i), one.size > 0 ? one.size : 2,
                one.dash.value_or(i == 1 ? PlotDash::Dash : PlotDash::Solid)};
    }

    void series(std::size_t i) const
    {
        const PlotSeries& one = m_plot.series[i];
        if (one.points.empty()) return;
        const bool apart = one.mark == PlotMark::Points; // each with its own name
        if (!apart) m_canvas.beginPart(one.title);
        switch (one.mark) {
        case PlotMark::Line:
        case PlotMark::Steps: line(i); break;
        case PlotMark::Points: points(i); break;
        case PlotMark::Bars: bars(i); break;
        case PlotMark::Levels: levels(i); break;
        case PlotMark::Cells:
        case PlotMark::Boxes: boxes(i); break;
        }
        if (!apart) m_canvas.endPart();
    }

    void line(std::size_t i) const
    {
        const PlotSeries& one = m_plot.series[i];
        std::vector<PlotPlace> places;
        const auto draw = [&] {
            strokeInside(m_canvas, places, m.area.grown(2), lineOf(i));
            if (places.size() == 1) m_canvas.disc(places[0], 3, std::nullopt, lineOf(i));
            places.clear();
        };
        for (const PlotPoint& point : one.points) {
            if (!std::isfinite(point.y)) {
                draw();
                continue;
            }
            const PlotPlace at = m.place(point.x, point.y);
            if (one.mark == PlotMark::Steps && !places.empty()) places.push_back({at.x, places.back().y});
            places.push_back(at);
        }
        if (one.toEdge && !places.empty()) places.push_back({m.area.right, places.back().y});
        draw();
        if (!one.dots) return;
        for (const PlotPoint& point : one.points)
            if (std::isfinite(point.y))
                m_canvas.disc(m.place(point.x, point.y), 2.5,
                              point.shape == PlotShape::Ring ? ground : inkOf(m_plot, i), {inkOf(m_plot, i)});
    }

    void points(std::size_t i) const
    {
        const PlotSeries& one = m_plot.series[i];
        std::set<std::pair<long, long>> taken;
        for (const PlotPoint& point : one.points) {
            const std::string_view name = std::string_view(point.name).substr(0, point.name.find('\n'));
            const PlotPlace at = m.place(point.x, point.y);
            const PlotInk ink = point.ink.value_or(inkOf(m_plot, i));
            if (one.points.size() > mostApart && !taken.insert({std::lround(2 * at.x), std::lround(2 * at.y)}).second)
                continue; // at the same half pixel
            m_canvas.beginPart(name.empty() ? std::string_view(one.title) : name);
            paintShape(m_canvas, at, point.shape.value_or(one.shape), one.size > 0 ? one.size : 3.5, ink);
            if (!one.named) text(at, name, ink.forLabel(), PlotAlign::Centre, PlotFont::Strong); // in the mark
            m_canvas.endPart();
        }
    }

    void bars(std::size_t i) const
    {
        const PlotSeries& one = m_plot.series[i];
        const auto parts = m.stack(i);
        for (std::size_t k = 0; k < parts.size(); ++k) {
            const PlotPoint& point = one.points[k];
            const PlotBox box = m.barOf(one, point.x, parts[k].first, parts[k].second);
            const PlotInk ink = point.ink.value_or(inkOf(m_plot, i));
            const std::string name = fitting(point.name, box.width() - 2 * inside, m_canvas);
            if (box.height() < 0.01) { // what the whole stack comes to, where it reaches no other stack's
                const double each = m.place(point.x + 1, 0).x - m.place(point.x, 0).x;
                if (one.points.size() == 1 || m_canvas.textWidth(point.name, PlotFont::Small) < each)
                    text({box.centre().x, box.top - 9}, elided(point.name, box.width() + 60, m_canvas), textInk,
                         PlotAlign::Centre);
                continue;
            }
            if (one.hatched)
                m_canvas.hatch(box, ink);
            else
                m_canvas.fill(box, ink);
            if (parts[k].first > 0 && !one.hatched && box.height() > 2) // apart from the part below
                m_canvas.fill({box.left, box.bottom - 1, box.right, box.bottom}, ground);
            if (box.height() >= plotLine) text(box.centre(), name, ink.forLabel(), PlotAlign::Centre);
        }
    }

    void levels(std::size_t i) const
    {
        const PlotSeries& one = m_plot.series[i];
        for (const PlotPoint& point : one.points) {
            if (one.hatched) {
                const double top = m.stackTop(one.group, point.x);
                if (top > point.y) m_canvas.hatch(m.barOf(one, point.x, std::max(0.0, point.y), top), inkOf(m_plot, i));
                continue;
            }
            const PlotBox bar = m.barOf(one, point.x, 0, point.y);
            if (bar.top < m.area.top) continue; // beyond the axis, it limits nothing
            stroke(m_canvas, {bar.left - 2, bar.top}, {bar.right + 2, bar.top}, {inkOf(m_plot, i), 2});
        }
    }

    void boxes(std::size_t i) const
    {
        const PlotSeries& one = m_plot.series[i];
        for (const PlotPoint& point : one.points) {
            PlotBox box = m.boxOf(point, one.mark);
            box.right = std::max(box.right, box.left + 2);
            const PlotInk ink = point.ink.value_or(inkOf(m_plot, i));
            const bool hollow = one.shape == PlotShape::Ring;
            if (one.mark == PlotMark::Boxes && !hollow && box.width() > 4) box.right -= 1; // apart from the next
            if (hollow)
                outline(m_canvas, box, {ink, 1.5});
            else if (one.hatched)
                m_canvas.hatch(box, ink);
            else
                m_canvas.fill(box, ink);
            if (m_plot.across.broken && box.left <= m.area.left)
                for (const double x : {box.left + 7, box.left + 11})
                    stroke(m_canvas, {x + 2, box.top - 1}, {x - 2, box.bottom + 1}, {ground, 2});
            if (m_plot.up.aboveRows) {
                text({m.area.right, rowTop(std::floor(point.y + 0.5)) + 8}, point.name,
                     ink.hue == PlotHue::Better || ink.hue == PlotHue::Worse ? ink : textInk, PlotAlign::Right);
                continue;
            }
            const std::string name = fitting(point.name, box.width() - 2 * inside, m_canvas);
            if (name.empty() || box.height() < 11) continue;
            const double half = m_canvas.textWidth(name, PlotFont::Small) / 2 + 4;
            if (one.hatched) // readable over it
                m_canvas.fill({box.centre().x - half, box.top + 2, box.centre().x + half, box.bottom - 2}, ground);
            text(box.centre(), name, one.hatched ? secondary : hollow ? textInk : ink.forLabel(), PlotAlign::Centre);
        }
    }

private:
    const PlotLayout& m;
    const Plot& m_plot;
    const std::vector<PlotLabel>& m_labels;
    PlotCanvas& m_canvas;
};

} // namespace

void paintPanel(const PlotLayout& layout, const std::vector<PlotLabel>& labels, PlotCanvas& canvas)
{
    PanelPainter(layout, labels, canvas).paint();
}

} // namespace stagewright
