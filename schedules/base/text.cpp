#include "schedules/base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace stagewright {

std::string lowered(std::string_view text)
{
    std::string out(text);
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return out;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators)
{
    std::vector<std::string_view> parts;
    for (;;) {
        const std::size_t at = text.find_first_of(separators);
        parts.push_back(text.substr(0, at));
        if (at == std::string_view::npos) return parts;
        text.remove_prefix(at + 1);
    }
}

std::vector<std::string_view> itemsOf(std::string_view text, std::string_view separators)
{
    auto items = split(text, separators);
    if (items.back().empty()) items.pop_back();
    return items;
}

std::vector<std::string_view> wordsOf(std::string_view text)
{
    auto words = split(text, " \t\r\n");
    std::erase_if(words, [](std::string_view word) { return word.empty(); });
    return words;
}

KeyValue keyValueOf(std::string_view text, char sign)
{
    const std::size_t at = text.find(sign);
    if (at == std::string_view::npos) return {text, std::nullopt};
    return {text.substr(0, at), text.substr(at + 1)};
}

template <typename Whole>
std::optional<Whole> wholeOf(std::string_view text)
{
    Whole value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}
template std::optional<int> wholeOf(std::string_view);
template std::optional<std::int64_t> wholeOf(std::string_view);
template std::optional<std::uint64_t> wholeOf(std::string_view);

std::optional<Quantity> quantityOf(std::string_view text)
{
    Quantity out;
    const char* const last = text.data() + text.size();
    const auto [end, code] = std::from_chars(text.data(), last, out.value);
    if (code != std::errc() || !std::isfinite(out.value)) return std::nullopt;
    out.unit = std::string_view(end, static_cast<std::size_t>(last - end));
    return out;
}

std::optional<double> numberOf(std::string_view text)
{
    const auto read = quantityOf(text);
    if (!read || !read->unit.empty()) return std::nullopt;
    return read->value;
}

bool readNumber(std::string_view text, int& value)
{
    const auto read = wholeOf<int>(text);
    value = read.value_or(value);
    return read.has_value();
}

bool readNumber(std::string_view text, double& value)
{
    const auto read = numberOf(text);
    value = read.value_or(value);
    return read.has_value();
}

std::optional<WholePair> wholePairOf(std::string_view text, char sign)
{
    const auto [first, last] = keyValueOf(text, sign);
    WholePair out;
    if (!last || !readNumber(first, out.first) || !readNumber(*last, out.last)) return std::nullopt;
    return out;
}

std::optional<WholePair> rangeOf(std::string_view text)
{
    if (const auto one = wholeOf<int>(text)) return WholePair{*one, *one};
    return wholePairOf(text);
}

std::optional<std::vector<int>> wholesOf(std::string_view text)
{
    std::vector<int> out;
    for (const std::string_view item : itemsOf(text))
        if (!readNumber(item, out.emplace_back())) return std::nullopt;
    return out;
}

std::string joined(const std::vector<std::string>& parts, std::string_view separator)
{
    std::string text;
    for (const std::string& part : parts) {
        if (&part != &parts.front()) text += separator;
        text += part;
    }
    return text;
}

std::string listed(const std::vector<std::string>& parts)
{
    if (parts.size() < 2) return joined(parts);
    return joined({parts.begin(), parts.end() - 1}) + " and " + parts.back();
}

std::size_t editDistance(std::string_view a, std::string_view b)
{
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t above = row[j];
            row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
            diagonal = above;
        }
    }
    return row[b.size()];
}

std::string nearestName(std::string_view text, const std::vector<std::string>& names)
{
    std::string best;
    std::size_t least = std::max<std::size_t>(2, text.size() / 3) + 1;
    for (const std::string& name : names) {
        const std::size_t distance = editDistance(text, name);
        if (distance < least) {
            least = distance;
            best = name;
        } else if (best.empty() && text.size() >= 3 && name.starts_with(text)) {
            best = name;
        }
    }
    return best;
}

} // namespace stagewright
