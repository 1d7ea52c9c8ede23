// Text as people type it: trimmed and split, numbers, names that are near, lists of key=value. Blanks are spaces, tabs
// and line breaks. Views point into the text they are made from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stagewright {

constexpr bool isBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

constexpr bool isDigit(char c) { return c >= '0' && c <= '9'; }

constexpr std::string_view trimmed(std::string_view text) // without blanks at both ends
{
    while (!text.empty() && isBlank(text.front())) text.remove_prefix(1);
    while (!text.empty() && isBlank(text.back())) text.remove_suffix(1);
    return text;
}

std::string lowered(std::string_view text); // A to Z only

// Every part between separators, each a single character of the list, empty parts too: "a,,b" has three, "a," two and
// "" one.
std::vector<std::string_view> split(std::string_view text, std::string_view separators);
// As split, but a separator may end the last item: "a," has one and "" none.
std::vector<std::string_view> itemsOf(std::string_view text, std::string_view separators = ",");
std::vector<std::string_view> wordsOf(std::string_view text); // between blanks

// What is before and after the first sign: "F=1" → "F" and "1". Without the sign there is no value.
struct KeyValue {
    std::string_view key;
    std::optional<std::string_view> value;
};
KeyValue keyValueOf(std::string_view text, char sign = '=');

// The number that is the whole text, without blanks; none where it is not one or does not fit. For int, std::int64_t,
// std::uint64_t.
template <typename Whole>
std::optional<Whole> wholeOf(std::string_view text);
std::optional<double> numberOf(std::string_view text); // finite

// A number and what follows it: "50us", "64 MB". None where no finite number comes first.
struct Quantity {
    double value = 0;
    std::string_view unit;
};
std::optional<Quantity> quantityOf(std::string_view text);

// The same number into a variable, which keeps its value where there is none.
bool readNumber(std::string_view text, int& value);
bool readNumber(std::string_view text, double& value);

// "1-3", and of a range "2", which is 2 to 2, too.
struct WholePair {
    int first = 0, last = 0;
};
std::optional<WholePair> wholePairOf(std::string_view text, char sign = '-');
std::optional<WholePair> rangeOf(std::string_view text);

std::optional<std::vector<int>> wholesOf(std::string_view text); // "3,2,2,1"; none where an item is not a whole number

// "a, b, c" and "a, b and c".
std::string joined(const std::vector<std::string>& parts, std::string_view separator = ", ");
std::string listed(const std::vector<std::string>& parts);

// Insertions, deletions and replacements that make one of the other. O(a · b).
std::size_t editDistance(std::string_view a, std::string_view b);
// The nearest of the names that is near enough to be meant, else the first that starts with the text; "" where there is
// none.
std::string nearestName(std::string_view text, const std::vector<std::string>& names);

} // namespace stagewright
