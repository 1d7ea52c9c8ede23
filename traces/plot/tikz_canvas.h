// TikzCanvas: a canvas whose picture is a tikzpicture of LaTeX, as wide as the column that it is in.
#pragma once

#include <set>
#include <string>

#include "traces/plot/canvas.h"

namespace stagewright {

class TikzCanvas : public PlotCanvas {
public:
    // Pixels that a column of 240 pt has. In a wider one shapes grow and texts, of 6 pt, keep their size.
    static constexpr double column = 440;

    std::string picture() const; // with the colours that it uses

    double textWidth(std::string_view text, PlotFont font) const override; // about, in Computer Modern
    void line(std::span<const PlotPlace> places, const PlotStroke& stroke) override;
    void fill(const PlotBox& box, PlotInk ink) override;
    void hatch(const PlotBox& box, PlotInk ink) override;
    void polygon(std::span<const PlotPlace> places, std::optional<PlotInk> fill, const PlotStroke& stroke) override;
    void disc(PlotPlace at, double radius, std::optional<PlotInk> fill, const PlotStroke& stroke) override;
    void text(PlotPlace at, std::string_view text, PlotFont font, PlotAlign align, PlotInk ink) override;
    void beginPart(std::string_view name) override; // a comment
    void endPart() override {}

private:
    std::string colour(PlotInk ink);
    std::string paint(std::optional<PlotInk> fill, const PlotStroke& stroke);

    std::string m_text;
    std::set<std::string> m_colours;
};

// Text for pdfLaTeX: its characters escaped, signs beyond ASCII in its own words; a line of a comment.
std::string latex(std::string_view text);

} // namespace stagewright
