#include "traces/plot/svg_canvas.h"

#include <cmath>

#include <fmt/format.h>

#include "traces/plot/svg_colours.h"

namespace stagewright {
namespace {

constexpr double letter = 6.3; // the mean width of a letter, at 11 pixels
constexpr double hatchPitch = 6;

std::string pathOf(std::span<const PlotPlace> places)
{
    std::string path;
    for (const PlotPlace& at : places) path += fmt::format("{}{:.2f} {:.2f}", path.empty() ? "M" : "L", at.x, at.y);
    return path;
}

const char* dashesOf(PlotDash dash)
{
    switch (dash) {
    case PlotDash::Solid: return "";
    case PlotDash::Dash: return " stroke-dasharray=\"7 4\"";
    case PlotDash::DashDot: return " stroke-dasharray=\"7 3 2 3\"";
    case PlotDash::Dot: return " stroke-dasharray=\"2 3\"";
    }
    return "";
}

} // namespace

double SvgCanvas::textWidth(std::string_view text, PlotFont font) const
{
    const auto letters =
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
    return letter * (font == PlotFont::Strong ? 1.15 : 1) * static_cast<double>(letters);
}

std::string SvgCanvas::colour(PlotInk ink) const
{
    if (m_colours == Colours::Light) return lightColour(ink);
    const std::string_view name = colourName(ink);
    if (ink.strength >= 1 || ink.label) return fmt::format("var(--{})", name);
    return fmt::format("color-mix(in srgb,var(--{}) {:.0f}%,var(--canvas))", name, 100 * ink.strength);
}

std::string SvgCanvas::paint(std::optional<PlotInk> fill, const PlotStroke* stroke) const
{
    const bool page = m_colours == Colours::OfThePage; // variables are for style sheets only
    const std::string inside = fill ? colour(*fill) : "none", edge = stroke != nullptr ? colour(stroke->ink) : "";
    std::string out = page ? "style=\"fill:" + inside : "fill=\"" + inside + '"';
    if (stroke != nullptr) out += page ? ";stroke:" + edge : " stroke=\"" + edge + '"';
    if (page) out += '"';
    if (stroke == nullptr) return out;
    if (stroke->width != 1) out += fmt::format(" stroke-width=\"{:.3g}\"", stroke->width);
    return out + dashesOf(stroke->dash);
}

void SvgCanvas::line(std::span<const PlotPlace> places, const PlotStroke& stroke)
{
    m_text += fmt::format("<path {} d=\"{}\"/>\n", paint(std::nullopt, &stroke), pathOf(places));
}

void SvgCanvas::fill(const PlotBox& box, PlotInk ink)
{
    m_text +=
        fmt::format("<rect {} x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"/>\n", paint(ink, nullptr),
                    box.left, box.top, std::max(0.0, box.width()), std::max(0.0, box.height()));
}

void SvgCanvas::hatch(const PlotBox& box, PlotInk ink)
{
    // Lines x + y = n · pitch; each meets the box in one piece.
    std::string path;
    const double high = box.right + box.bottom;
    for (double sum = std::ceil((box.left + box.top) / hatchPitch) * hatchPitch; sum < high; sum += hatchPitch) {
        const double from = std::max(box.left, sum - box.bottom), to = std::min(box.right, sum - box.top);
        if (to > from) path += fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}", from, sum - from, to, sum - to);
    }
    const PlotStroke stroke{ink};
    if (!path.empty()) m_text += fmt::format("<path {} d=\"{}\"/>\n", paint(std::nullopt, &stroke), path);
}

void SvgCanvas::polygon(std::span<const PlotPlace> places, std::optional<PlotInk> fill, const PlotStroke& stroke)
{
    m_text += fmt::format("<path {} d=\"{}Z\"/>\n", paint(fill, &stroke), pathOf(places));
}

void SvgCanvas::disc(PlotPlace at, double radius, std::optional<PlotInk> fill, const PlotStroke& stroke)
{
    m_text += fmt::format("<circle {} cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"{:.3g}\"/>\n", paint(fill, &stroke), at.x, at.y,
                          radius);
}

void SvgCanvas::text(PlotPlace at, std::string_view text, PlotFont font, PlotAlign align, PlotInk ink)
{
    const char* anchor = align == PlotAlign::Left     ? ""
                         : align == PlotAlign::Centre ? " text-anchor=\"middle\""
                                                      : " text-anchor=\"end\"";
    m_text += fmt::format("<text {}{}{} x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", paint(ink, nullptr), anchor,
                          font == PlotFont::Strong ? " font-size=\"12\" font-weight=\"600\"" : "", at.x, at.y + 4,
                          escaped(text));
}

void SvgCanvas::beginPart(std::string_view name)
{
    m_text += name.empty() ? std::string("<g>\n") : fmt::format("<g><title>{}</title>\n", escaped(name));
}

void SvgCanvas::endPart() { m_text += "</g>\n"; }

} // namespace stagewright
