// Small readers of the lesson files' words. Internal to traces/lessons.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/text.h"

namespace stagewright::lessons {

// Parts between separators, trimmed; empty ones are dropped.
inline std::vector<std::string> partsOf(std::string_view text, std::string_view separators)
{
    std::vector<std::string> parts;
    for (const std::string_view part : split(text, separators))
        if (const auto words = trimmed(part); !words.empty()) parts.emplace_back(words);
    return parts;
}

inline std::optional<double> numberOf(std::string_view text) { return stagewright::numberOf(trimmed(text)); }

inline std::optional<int> wholeOf(std::string_view text) { return stagewright::wholeOf<int>(trimmed(text)); }

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
