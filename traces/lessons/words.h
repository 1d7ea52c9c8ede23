// Small readers of the lesson files' words. Internal to traces/lessons.
#pragma once

#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stagewright::lessons {

inline std::string_view trimmed(std::string_view text)
{
    const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
    while (!text.empty() && blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && blank(text.back())) text.remove_suffix(1);
    return text;
}

// Parts between separators, trimmed; empty ones are dropped.
inline std::vector<std::string> partsOf(std::string_view text, std::string_view separators)
{
    std::vector<std::string> parts;
    std::size_t from = 0;
    while (from <= text.size()) {
        const std::size_t at = std::min(text.find_first_of(separators, from), text.size());
        if (const auto part = trimmed(text.substr(from, at - from)); !part.empty()) parts.emplace_back(part);
        from = at + 1;
    }
    return parts;
}

inline std::optional<double> numberOf(std::string_view text)
{
    double value = 0;
    text = trimmed(text);
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || code != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
    return value;
}

inline std::optional<int> wholeOf(std::string_view text)
{
    int value = 0;
    text = trimmed(text);
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || code != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

// "1,1,1.5" → numbers; empty if one is not a number.
inline std::optional<std::vector<double>> numbersOf(std::string_view text, std::string_view separators = ",")
{
    std::vector<double> numbers;
    for (const std::string& part : partsOf(text, separators)) {
        const auto number = numberOf(part);
        if (!number) return std::nullopt;
        numbers.push_back(*number);
    }
    return numbers;
}

} // namespace stagewright::lessons
