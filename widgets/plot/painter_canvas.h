// PainterCanvas: a plot's canvas on a QPainter, in a theme's colours. GUI thread, or that of the painter's device.
#pragma once

#include <QFontMetricsF>
#include <QPainter>
#include <QRectF>

#include "traces/plot/canvas.h"
#include "widgets/theme.h"

namespace stagewright {

QColor colourOf(PlotInk ink, const Theme& theme);
inline PlotBox boxOf(const QRectF& rect) { return {rect.left(), rect.top(), rect.right(), rect.bottom()}; }
inline QRectF rectOf(const PlotBox& box) { return {box.left, box.top, box.width(), box.height()}; }

// The whole plot, as exports have it. No item is marked.
void paintPlot(const Plot& plot, QPainter& painter, const QRectF& rect, const Theme& theme);

class PainterCanvas : public PlotCanvas {
public:
    // null: only measures text. Painter and theme outlive the canvas.
    PainterCanvas(QPainter* painter, const Theme& theme);

    double textWidth(std::string_view text, PlotFont font) const override;
    void line(std::span<const PlotPlace> places, const PlotStroke& stroke) override;
    void fill(const PlotBox& box, PlotInk ink) override;
    void hatch(const PlotBox& box, PlotInk ink) override;
    void polygon(std::span<const PlotPlace> places, std::optional<PlotInk> fill, const PlotStroke& stroke) override;
    void disc(PlotPlace at, double radius, std::optional<PlotInk> fill, const PlotStroke& stroke) override;
    void text(PlotPlace at, std::string_view text, PlotFont font, PlotAlign align, PlotInk ink) override;
    void beginPart(std::string_view) override {}
    void endPart() override {}

private:
    QPen penOf(const PlotStroke& stroke) const;
    QBrush brushOf(const std::optional<PlotInk>& fill) const;

    QPainter* m_painter;
    const Theme& m_theme;
    QFontMetricsF m_small, m_strong;
};

} // namespace stagewright
