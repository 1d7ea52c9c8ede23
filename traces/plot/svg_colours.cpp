#include "traces/plot/svg_colours.h"

#include <cmath>

#include <fmt/format.h>

#include "schedules/base/shown_text.h"
#include "schedules/base/text.h"

namespace stagewright {

// The same palette as in the window.
const std::string_view lightColours =
    "--f:#2F5D9C;--lf:#fff;--b:#EE8F2A;--lb:#14171C;--w:#45C794;--lw:#14171C;--c:#D19FCC;--lc:#14171C;--o:#32343E;-"
    "-lo:#fff;--d:#C4C9D2;"
    "--idle:#F1F2F5;--hatch:#C4C9D2;--critical:#D7263D;--canvas:#fff;--window:#F3F4F7;--text:#1B1F27;--secondary:#"
    "5A6270;--faint:#8A92A0;"
    "--separator:#DDE0E6;--grid:#ECEEF2;--accent:#2F5D9C;--area:#D5DEEB;--better:#1C7C54;--worse:#D7263D;";
const std::string_view darkColours =
    "--f:#4895EE;--lf:#14171C;--b:#F7C033;--lb:#14171C;--w:#8AE2B8;--lw:#14171C;--c:#A14492;--lc:#fff;--o:#C9D0E0;-"
    "-lo:#14171C;--d:#3A414D;"
    "--idle:#1E222A;--hatch:#3A414D;--critical:#FF4D63;--canvas:#181B21;--window:#14171C;--text:#E8EBF0;--"
    "secondary:#A3ABB9;--faint:#6F7887;"
    "--separator:#2C323C;--grid:#232830;--accent:#4895EE;--area:#253C59;--better:#8AE2B8;--worse:#FF4D63;";

std::string_view lightColour(std::string_view name)
{
    for (const std::string_view item : itemsOf(lightColours, ";")) // "--f:#2F5D9C"
        if (const auto [key, colour] = keyValueOf(item, ':'); key.substr(2) == name) return *colour;
    return "#000";
}

namespace {

constexpr std::string_view hueNames[] = {"text",     "secondary", "faint", "grid", "separator", "canvas", "accent",
                                         "critical", "better",    "worse", "idle", "hatch",     "area",   "f",
                                         "b",        "w",         "c",     "o",    "d"};

} // namespace

std::string_view colourName(PlotInk ink)
{
    if (!ink.label) return hueNames[static_cast<std::size_t>(ink.hue)];
    if (ink.strength < 0.6F) return "text";
    switch (ink.hue) {
    case PlotHue::Accent:
    case PlotHue::Forward: return "lf";
    case PlotHue::Backward: return "lb";
    case PlotHue::Weight: return "lw";
    case PlotHue::Communication: return "lc";
    case PlotHue::Optimizer: return "lo";
    case PlotHue::Text:
    case PlotHue::Secondary:
    case PlotHue::Critical: return "canvas";
    default: return "text";
    }
}

std::string lightColour(PlotInk ink)
{
    const std::string_view colour = lightColour(colourName(ink));
    if (ink.strength >= 1 || ink.label) return std::string(colour);
    const auto part = [&](std::size_t index) { // #ABC or #AABBCC
        const std::string digits(colour.size() == 4 ? std::string(2, colour[1 + index])
                                                    : colour.substr(1 + 2 * index, 2));
        return static_cast<int>(std::lround(255 + (std::stoi(digits, nullptr, 16) - 255) * ink.strength));
    };
    return fmt::format("#{:02X}{:02X}{:02X}", part(0), part(1), part(2));
}

std::string escaped(std::string_view text)
{
    std::string out;
    out.reserve(text.size() + text.size() / 8);
    for (std::size_t i = 0; i < text.size();) {
        const auto byte = static_cast<unsigned char>(text[i]);
        if (byte < 0x80) {
            switch (byte) {
            case '&': out += "&amp;"; break;
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '"': out += "&quot;"; break;
            case '\'': out += "&#39;"; break;
            default:
                if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f)
                    out += "\xEF\xBF\xBD";
                else
                    out += static_cast<char>(byte);
            }
            ++i;
            continue;
        }
        const std::size_t length = byte >= 0xF0 && byte < 0xF5   ? 4
                                   : byte >= 0xE0                ? 3
                                   : byte >= 0xC2 && byte < 0xE0 ? 2
                                                                 : 0;
        bool whole = length > 0 && byte < 0xF5 && i + length <= text.size();
        for (std::size_t k = 1; whole && k < length; ++k)
            whole = (static_cast<unsigned char>(text[i + k]) & 0xC0) == 0x80;
        if (whole && length == 3) { // no overlong forms, no surrogates
            const auto second = static_cast<unsigned char>(text[i + 1]);
            whole = !(byte == 0xE0 && second < 0xA0) && !(byte == 0xED && second >= 0xA0);
        }
        if (whole && length == 4) {
            const auto second = static_cast<unsigned char>(text[i + 1]);
            whole = !(byte == 0xF0 && second < 0x90) && !(byte == 0xF4 && second >= 0x90);
        }
        if (!whole) {
            out += "\xEF\xBF\xBD";
            ++i;
            continue;
        }
        out += shownText(text.substr(i, length)); // C1 and marks of direction as escapes
        i += length;
    }
    return out;
}

} // namespace stagewright
