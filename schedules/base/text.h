// Text as people type it: trimmed and split, numbers, names that are near, lists of key=value. Blanks are spaces, tabs and line breaks.
// Views point into the text they are made from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stagewright {

std::string_view trimmed(std::string_view text); // without blanks at both ends
std::string lowered(std::string_view text);      // A to Z only

// Every part, empty ones too: "a,,b" has three, "" has one.
std::vector<std::string_view> split(std::string_view text, char separator);

// The text at the first sign: "F=1" → "F" and "1". Without the sign the value is absent.
struct KeyValue {
    std::string_view key;
    std::optional<std::string_view> value;
    std::string_view text; // both
};
KeyValue keyValueOf(std::string_view text, char sign = '=');
std::vector<KeyValue> keyValuesOf(std::string_view list, char separator = ',', char sign = '='); // one a part

// The number that is the whole text, without blanks; none where it is not one or does not fit. For int, std::int64_t, std::uint64_t.
template <typename Whole>
std::optional<Whole> wholeOf(std::string_view text);
std::optional<double> numberOf(std::string_view text); // finite

// A number and what follows it: "50us", "64 MB". None where no finite number comes first.
struct Quantity {
    double value = 0;
    std::string_view unit;
};
std::optional<Quantity> quantityOf(std::string_view text);

// "a, b, c" and "a, b and c".
std::string joined(const std::vector<std::string>& parts, std::string_view separator = ", ");
std::string listed(const std::vector<std::string>& parts);

// Insertions, deletions and replacements that make one of the other. O(a · b).
std::size_t editDistance(std::string_view a, std::string_view b);
// The nearest of the names that is near enough to be meant, else the first that starts with the text; "" where there is none.
std::string nearestName(std::string_view text, const std::vector<std::string>& names);

} // namespace stagewright
