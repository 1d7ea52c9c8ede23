#include "traces/plot/tikz_canvas.h"

#include <fmt/format.h>

#include "traces/plot/svg_canvas.h"
#include "traces/plot/svg_colours.h"

namespace stagewright {
namespace {

constexpr double pointsAPixel = 240 / TikzCanvas::column;
constexpr double tikzLetters = 1.2; // letters of Computer Modern at 6 pt than Inter's

// What pdfLaTeX does not read as it is.
constexpr std::pair<std::string_view, std::string_view> signs[] = {
    {"&", "\\&"},
    {"%", "\\%"},
    {"$", "\\$"},
    {"#", "\\#"},
    {"_", "\\_"},
    {"{", "\\{"},
    {"}", "\\}"},
    {"\\", "\\textbackslash{}"},
    {"~", "\\textasciitilde{}"},
    {"^", "\\textasciicircum{}"},
    {"<", "$<$"},
    {">", "$>$"},
    {"|", "$|$"},
    {"\n", " "},
    {"−", "$-$"},
    {"×", "$\\times$"},
    {"÷", "$\\div$"},
    {"±", "$\\pm$"},
    {"·", "$\\cdot$"},
    {"≤", "$\\le$"},
    {"≥", "$\\ge$"},
    {"≈", "$\\approx$"},
    {"∞", "$\\infty$"},
    {"σ", "$\\sigma$"},
    {"µ", "$\\mu$"},
    {"μ", "$\\mu$"},
    {"→", "$\\to$"},
    {"⇢", "$\\to$"},
    {"›", "$>$"},
    {"…", "\\dots{}"},
    {"–", "--"},
    {"\u00a0", "~"},
    {"\u202f", "\\,"},
    {"²", "$^2$"},
    {"³", "$^3$"},
    {"⁹", "$^9$"},
};

std::string tikzPath(std::span<const PlotPlace> places)
{
    std::string path;
    for (const PlotPlace& at : places) path += fmt::format("{}({:.2f},{:.2f})", path.empty() ? "" : "--", at.x, at.y);
    return path;
}

const char* tikzDashes(PlotDash dash)
{
    switch (dash) {
    case PlotDash::Solid: return "";
    case PlotDash::Dash: return ",dashed";
    case PlotDash::DashDot: return ",dash dot";
    case PlotDash::Dot: return ",dotted";
    }
    return "";
}

std::string rectangle(const PlotBox& box)
{
    return fmt::format("({:.2f},{:.2f}) rectangle ({:.2f},{:.2f})", box.left, box.top, std::max(box.left, box.right),
                       std::max(box.top, box.bottom));
}

} // namespace

std::string latex(std::string_view text)
{
    std::string out;
    while (!text.empty()) {
        std::string_view as = text.substr(0, 1);
        std::size_t length = 1;
        for (const auto& [sign, words] : signs)
            if (text.starts_with(sign)) {
                as = words;
                length = sign.size();
                break;
            }
        out += as;
        text.remove_prefix(length);
    }
    return out;
}

std::string TikzCanvas::picture() const
{
    std::string out;
    for (const std::string& hex : m_colours) out += fmt::format("\\definecolor{{sw{0}}}{{HTML}}{{{0}}}\n", hex);
    return out + fmt::format("\\begin{{tikzpicture}}[x={0:.5f}\\linewidth, y=-{0:.5f}\\linewidth, every node/.style="
                             "{{inner sep=0pt, font=\\fontsize{{6}}{{7}}\\selectfont}}]\n{1}\\end{{tikzpicture}}\n",
                             1 / column, m_text);
}

double TikzCanvas::textWidth(std::string_view text, PlotFont font) const
{
    return tikzLetters * SvgCanvas(SvgCanvas::Colours::Light).textWidth(text, font);
}

std::string TikzCanvas::colour(PlotInk ink)
{
    std::string hex = lightColour(ink).substr(1);
    if (hex.size() == 3) hex = fmt::format("{0}{0}{1}{1}{2}{2}", hex[0], hex[1], hex[2]);
    for (char& digit : hex)
        if (digit >= 'a' && digit <= 'f') digit = static_cast<char>(digit - 'a' + 'A');
    m_colours.insert(hex);
    return "sw" + hex;
}

std::string TikzCanvas::paint(std::optional<PlotInk> fill, const PlotStroke& stroke)
{
    return fmt::format("{}draw={},line width={:.2f}pt{}", fill ? fmt::format("fill={},", colour(*fill)) : "",
                       colour(stroke.ink), stroke.width * pointsAPixel, tikzDashes(stroke.dash));
}

void TikzCanvas::line(std::span<const PlotPlace> places, const PlotStroke& stroke)
{
    m_text += fmt::format("\\path[{}] {};\n", paint(std::nullopt, stroke), tikzPath(places));
}

void TikzCanvas::fill(const PlotBox& box, PlotInk ink)
{
    m_text += fmt::format("\\fill[{}] {};\n", colour(ink), rectangle(box));
}

void TikzCanvas::hatch(const PlotBox& box, PlotInk ink)
{
    m_text += fmt::format("\\fill[pattern=north east lines,pattern color={}] {};\n", colour(ink), rectangle(box));
}

void TikzCanvas::polygon(std::span<const PlotPlace> places, std::optional<PlotInk> fill, const PlotStroke& stroke)
{
    m_text += fmt::format("\\path[{}] {}--cycle;\n", paint(fill, stroke), tikzPath(places));
}

void TikzCanvas::disc(PlotPlace at, double radius, std::optional<PlotInk> fill, const PlotStroke& stroke)
{
    m_text += fmt::format("\\path[{}] ({:.2f},{:.2f}) circle[radius={:.2f}pt];\n", paint(fill, stroke), at.x, at.y,
                          radius * pointsAPixel);
}

void TikzCanvas::text(PlotPlace at, std::string_view text, PlotFont font, PlotAlign align, PlotInk ink)
{
    const char* anchor = align == PlotAlign::Left ? "mid west" : align == PlotAlign::Centre ? "mid" : "mid east";
    m_text += fmt::format("\\node[anchor={},text={}] at ({:.2f},{:.2f}) {{{}{}}};\n", anchor, colour(ink), at.x, at.y,
                          font == PlotFont::Strong ? "\\bfseries " : "", latex(text));
}

void TikzCanvas::beginPart(std::string_view name)
{
    if (!name.empty()) m_text += fmt::format("% {}\n", latex(name));
}

} // namespace stagewright
