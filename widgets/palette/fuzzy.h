// Fuzzy matching: whether the letters of a pattern occur in a text in order, and how well. Case and spaces of the pattern do
// not matter.
#pragma once

#include <optional>
#include <vector>

#include <QString>

namespace stagewright {

struct FuzzyMatch {
    int score = 0;           // higher is better; at the begin of words and in a row scores most
    std::vector<int> places; // of the pattern's letters in the text
};

// An empty pattern matches everything with score 0. O(pattern × text).
std::optional<FuzzyMatch> fuzzyMatch(const QString& pattern, const QString& text);

} // namespace stagewright
