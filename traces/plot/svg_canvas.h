// SvgCanvas: a canvas whose picture is the text of SVG elements.
#pragma once

#include <string>

#include "traces/plot/canvas.h"

namespace stagewright {

class SvgCanvas : public PlotCanvas {
public:
    enum class Colours {
        Light,     // as numbers, for a picture of its own
        OfThePage, // variables of the style sheet, for a page in light and dark
    };
    explicit SvgCanvas(Colours colours) : m_colours(colours) {}
    const std::string& elements() const { return m_text; }

    double textWidth(std::string_view text, PlotFont font) const override; // about, in Inter
    void line(std::span<const PlotPlace> places, const PlotStroke& stroke) override;
    void fill(const PlotBox& box, PlotInk ink) override;
    void hatch(const PlotBox& box, PlotInk ink) override;
    void polygon(std::span<const PlotPlace> places, std::optional<PlotInk> fill, const PlotStroke& stroke) override;
    void disc(PlotPlace at, double radius, std::optional<PlotInk> fill, const PlotStroke& stroke) override;
    void text(PlotPlace at, std::string_view text, PlotFont font, PlotAlign align, PlotInk ink) override;
    void beginPart(std::string_view name) override;
    void endPart() override;

private:
    std::string colour(PlotInk ink) const;
    std::string paint(std::optional<PlotInk> fill, const PlotStroke* stroke) const; // its attributes

    Colours m_colours;
    std::string m_text;
};

} // namespace stagewright
