#include "traces/import/kineto/event_repair.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace stagewright {

namespace {

bool isEscape(std::string_view at) // behind the backslash
{
    if (at.empty()) return false;
    if (at.front() != 'u') return std::string_view("\"\\/bfnrt").find(at.front()) != std::string_view::npos;
    return at.size() >= 5 &&
           std::all_of(at.begin() + 1, at.begin() + 5, [](unsigned char c) { return std::isxdigit(c) != 0; });
}

// Behind an opening quote: where the string ends.
std::size_t endOfString(std::string_view json, std::size_t at)
{
    while (at < json.size() && json[at] != '"') at += json[at] == '\\' ? 2 : 1;
    return std::min(at, json.size());
}

std::string withBackslashes(std::string_view text)
{
    bool path = false;
    for (std::size_t i = 0; i < text.size(); ++i)
        if (text[i] == '\\') path = !isEscape(text.substr(i + 1)) || path, ++i;
    if (!path) return std::string(text);
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        out += text[i];
        if (text[i] != '\\') continue;
        if (i + 1 < text.size() && (text[i + 1] == '\\' || text[i + 1] == '"'))
            out += text[++i];
        else
            out += '\\';
    }
    return out;
}

// Bytes of the UTF-8 character that starts here; 0: it is not one.
std::size_t characterAt(std::string_view text)
{
    const auto first = static_cast<unsigned char>(text.front());
    const std::size_t size = first < 0x80                    ? 1
                             : first >= 0xf0 && first < 0xf5 ? 4
                             : first >= 0xe0 && first < 0xf0 ? 3
                             : first >= 0xc2 && first < 0xe0 ? 2
                                                             : 0;
    if (size == 0 || size > text.size()) return 0;
    for (std::size_t i = 1; i < size; ++i)
        if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
    const unsigned second = size > 1 ? static_cast<unsigned char>(text[1]) : 0x80;
    const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
    const bool beyond = (first == 0xed && second >= 0xa0) || (first == 0xf4 && second >= 0x90);
    return overlong || beyond ? 0 : size;
}

} // namespace

std::string repairedEvent(std::string_view json)
{
    std::string text;
    text.reserve(json.size() + 16);
    for (std::size_t i = 0; i < json.size();) {
        const std::size_t size = characterAt(json.substr(i));
        if (size > 1)
            text.append(json.substr(i, size));
        else
            text += size == 0 ? '?' : static_cast<unsigned char>(json[i]) < 0x20 ? ' ' : json[i];
        i += std::max<std::size_t>(1, size);
    }
    if (text.find('\\') == std::string::npos) return text;
    std::string out;
    const std::string_view all(text);
    for (std::size_t i = 0; i < all.size();) {
        out += all[i];
        if (all[i++] != '"') continue;
        const std::size_t end = endOfString(all, i);
        out += withBackslashes(all.substr(i, end - i));
        if (end < all.size()) out += '"';
        i = end + 1;
    }
    return out;
}

bool isPathOfEscapes(std::string_view raw)
{
    const bool drive = raw.size() > 3 && std::isalpha(static_cast<unsigned char>(raw[0])) != 0 && raw[1] == ':' &&
                       raw[2] == '\\' && raw[3] != '\\';
    if (!drive && raw.find(".py(") == std::string_view::npos) return false;
    for (std::size_t i = raw.find('\\'); i != std::string_view::npos; i = raw.find('\\', i + 1))
        if (i + 1 >= raw.size() || std::string_view("bfnrt").find(raw[i + 1]) == std::string_view::npos) return false;
    return true;
}

} // namespace stagewright
