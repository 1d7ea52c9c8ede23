#include "traces/plot/drawing.h"

#include <cmath>

#include "traces/plot/panel_painter.h"
#include "traces/plot/strokes.h"

namespace stagewright {

using namespace ink;

namespace {

constexpr double nearPlace = 14; // pixels to a place that is pointed at

} // namespace

PlotDrawing::PlotDrawing(const Plot& plot, const PlotBox& whole, const PlotCanvas& canvas, int chosen)
    : m_plot(plot), m_whole(whole), m_chosen(chosen)
{
    if (chosen >= 0) m_foot = footOf(plot, canvas);
    addPanels(plot, {whole.left, whole.top + (plot.title.empty() ? 0 : 20), whole.right, whole.bottom - m_foot},
              canvas);
    for (std::size_t panel = 0; panel < m_panels.size(); ++panel)
        for (const PlotItem& item : m_panels[panel].plot.items) m_items.push_back({panel, &item});
    if (m_chosen >= items()) m_chosen = -1;
    for (std::size_t panel = 0; panel < m_panels.size(); ++panel) {
        const PlotLayout& layout = m_panels[panel];
        const bool here = m_chosen >= 0 && m_items[static_cast<std::size_t>(m_chosen)].panel == panel;
        m_labels.push_back(placedLabels(layout, canvas, here ? &item(m_chosen) : nullptr));
    }
}

// Panels below each other, by their shares of the height, over the same columns.
void PlotDrawing::addPanels(const Plot& plot, const PlotBox& whole, const PlotCanvas& canvas)
{
    std::vector<const Plot*> plots{&plot};
    double shares = plot.share;
    for (const Plot& below : plot.below) {
        plots.push_back(&below);
        shares += below.share;
    }
    PlotMargins margins;
    for (const bool measured : {false, true}) {
        m_panels.clear();
        double top = whole.top;
        for (const Plot* one : plots) {
            const double bottom = top + whole.height() * one->share / shares;
            m_panels.emplace_back(*one, PlotBox{whole.left, top, whole.right, bottom}, canvas, margins);
            if (!measured) {
                margins.left = std::max(margins.left, m_panels.back().margins.left);
                margins.right = std::max(margins.right, m_panels.back().margins.right);
            }
            top = bottom;
        }
        if (plots.size() == 1) return;
    }
}

// The lines that the longest text of an item takes.
double PlotDrawing::footOf(const Plot& plot, const PlotCanvas& canvas) const
{
    if (!plot.saysChoice) return 0;
    double wide = 0;
    for (const PlotItem& item : plot.items) wide = std::max(wide, canvas.textWidth(item.text, PlotFont::Small));
    const double room = std::max(80.0, m_whole.width() - 70);
    return 4 + plotLine * std::min(3.0, std::max(1.0, std::ceil(wide * 1.05 / room)));
}

const PlotItem& PlotDrawing::item(int index) const { return *m_items[static_cast<std::size_t>(index)].item; }

PlotBox PlotDrawing::boxOf(int index) const
{
    const Entry& entry = m_items[static_cast<std::size_t>(index)];
    PlotBox box = m_panels[entry.panel].boxOf(*entry.item);
    if (m_plot.below.empty() || entry.panel > 0 || std::isfinite(entry.item->y0)) return box;
    box.bottom = m_panels.back().area.bottom; // a band goes on through the plots below
    return box;
}

int PlotDrawing::itemAt(PlotPlace at) const
{
    int best = -1;
    double nearest = nearPlace * nearPlace;
    for (int i = 0; i < items(); ++i) {
        const PlotBox box = boxOf(i);
        const bool line = box.left == box.right; // a place across: the nearest one
        if (!item(i).point() && !line) {
            if (box.contains(at)) return i;
            continue;
        }
        if (line) {
            const double away = (box.left - at.x) * (box.left - at.x);
            if (at.y < box.top || at.y > box.bottom || (best >= 0 && away >= nearest)) continue;
            nearest = away;
            best = i;
            continue;
        }
        const PlotPlace middle = box.centre();
        const double square = (middle.x - at.x) * (middle.x - at.x) + (middle.y - at.y) * (middle.y - at.y);
        if (square >= nearest) continue;
        nearest = square;
        best = i;
    }
    return best;
}

std::vector<PlotBox> PlotDrawing::labels() const
{
    std::vector<PlotBox> boxes;
    for (const auto& panel : m_labels)
        for (const PlotLabel& label : panel) boxes.push_back(label.box);
    return boxes;
}

void PlotDrawing::paint(PlotCanvas& canvas) const
{
    for (std::size_t i = 0; i < m_panels.size(); ++i) paintPanel(m_panels[i], m_labels[i], canvas);
    if (!m_plot.title.empty())
        canvas.text({m_whole.left + 8, m_whole.top + 12},
                    elided(m_plot.title, m_whole.width() - 16, canvas, PlotFont::Strong), PlotFont::Strong,
                    PlotAlign::Left, textInk);
}

void PlotDrawing::paintChosen(PlotCanvas& canvas, int index) const
{
    if (index < 0 || index >= items()) return;
    const PlotBox box = boxOf(index);
    if (item(index).point())
        canvas.disc(box.centre(), 8, std::nullopt, {textInk, 1.75});
    else if (item(index).x0 == item(index).x1)
        stroke(canvas, {box.left, box.top}, {box.left, box.bottom}, {accent});
    else
        outline(canvas, box.grown(1), {accent, 1.75});
    if (m_plot.saysChoice)
        paintParagraph(canvas,
                       {m_panels.front().area.left, m_whole.bottom - m_foot + 2, m_whole.right - 10, m_whole.bottom},
                       item(index).text, secondary, PlotAlign::Left);
}

void PlotDrawing::paintHover(PlotCanvas& canvas, int index) const
{
    if (index < 0 || index >= items()) return;
    const PlotBox box = boxOf(index);
    if (item(index).point())
        canvas.disc(box.centre(), 8, std::nullopt, {accent});
    else
        outline(canvas, box.grown(-1), {accent});
}

} // namespace stagewright
