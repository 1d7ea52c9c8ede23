// PlotDrawing: a plot in a box of pixels: laid out once, painted on any canvas, with the places of what can be pointed at.
#pragma once

#include <vector>

#include "traces/plot/labels.h"
#include "traces/plot/layout.h"

namespace stagewright {

class PlotDrawing {
public:
    // `plot` outlives the drawing; the canvas only measures text. The name of the chosen item (−1: none) is placed first.
    PlotDrawing(const Plot& plot, const PlotBox& whole, const PlotCanvas& canvas, int chosen = -1);

    void paint(PlotCanvas& canvas) const;
    void paintChosen(PlotCanvas& canvas, int item) const; // its mark, and its text where the plot says it
    void paintHover(PlotCanvas& canvas, int item) const;

    int items() const { return static_cast<int>(m_items.size()); }
    const PlotItem& item(int index) const; // those of the plots below follow
    PlotBox boxOf(int item) const;         // of a place: a square around it
    int itemAt(PlotPlace at) const;        // the nearest place within 14 pixels, or the area at it; −1: none
    std::vector<PlotBox> labels() const;   // names of points, as painted

private:
    struct Entry {
        std::size_t panel;
        const PlotItem* item;
    };
    void addPanels(const Plot& plot, const PlotBox& whole, const PlotCanvas& canvas);
    double footOf(const Plot& plot, const PlotCanvas& canvas) const;

    const Plot& m_plot;
    PlotBox m_whole;
    double m_foot = 0; // of the chosen item's text
    std::vector<PlotLayout> m_panels;
    std::vector<std::vector<PlotLabel>> m_labels; // by panel
    std::vector<Entry> m_items;
    int m_chosen;
};

} // namespace stagewright
