#include "schedules/base/shown_text.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>

#include <fmt/format.h>

namespace stagewright {

namespace {

struct CodePoint {
    char32_t value = 0;
    std::size_t bytes = 1;
};

// None: its first byte starts no character.
std::optional<CodePoint> firstOf(std::string_view text)
{
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    if (first < 0x80) return CodePoint{first, 1};
    const std::size_t bytes = first >= 0xC2 && first < 0xE0   ? 2
                              : (first & 0xF0) == 0xE0        ? 3
                              : first >= 0xF0 && first < 0xF5 ? 4
                                                              : 0;
    if (bytes == 0 || text.size() < bytes) return std::nullopt;
    char32_t value = first & (0x7F >> bytes);
    for (std::size_t i = 1; i < bytes; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return std::nullopt;
        value = (value << 6) | (byte(i) & 0x3F);
    }
    const bool longer = (bytes == 3 && value < 0x800) || (bytes == 4 && (value < 0x10000 || value > 0x10FFFF));
    if (longer || (value >= 0xD800 && value < 0xE000)) return std::nullopt;
    return CodePoint{value, bytes};
}

bool isShown(char32_t c)
{
    if (c == '\n' || c == '\t') return true;
    if (c < 0x20 || (c >= 0x7F && c < 0xA0)) return false;
    const bool direction =
        c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
    // the last two: XML may not hold them
    return !direction && c != 0x2028 && c != 0x2029 && c != 0xFFFE && c != 0xFFFF;
}

const std::string& colourMark()
{
    static const std::string mark = fmt::format("\x1b{:08x}{:08x}[", std::random_device()(), std::random_device()());
    return mark;
}

} // namespace

std::string shownText(std::string_view text)
{
    const bool plain =
        std::all_of(text.begin(), text.end(), [](char c) { return (c >= 0x20 && c < 0x7F) || c == '\n' || c == '\t'; });
    if (plain) return std::string(text);
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const auto found = firstOf(text);
        const std::size_t bytes = found ? found->bytes : 1;
        if (found && isShown(found->value))
            out += text.substr(0, bytes);
        else if (found && found->value >= 0x80)
            out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(found->value));
        else
            out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
        text.remove_prefix(bytes);
    }
    return out;
}

std::string colourCode(std::string_view attributes) { return fmt::format("{}{}m", colourMark(), attributes); }

std::string forTerminal(std::string_view text, bool colour)
{
    const std::string& mark = colourMark();
    std::string out;
    for (;;) {
        const std::size_t at = text.find(mark);
        out += shownText(text.substr(0, at));
        if (at == std::string_view::npos) return out;
        text.remove_prefix(at + mark.size());
        const std::size_t end = text.find('m');
        if (end == std::string_view::npos) return out;
        if (colour) out += fmt::format("\x1b[{}m", text.substr(0, end));
        text.remove_prefix(end + 1);
    }
}

} // namespace stagewright
