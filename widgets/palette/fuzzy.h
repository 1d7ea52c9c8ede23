// Fuzzy matching: whether the letters of a pattern occur in a text in order, and how well. Ignores case and spaces of
// the pattern.
#pragma once

#include <optional>
#include <vector>

#include <QString>

namespace stagewright {

struct FuzzyMatch {
    int score = 0;           // higher is better; matches at the start of words and adjacent letters score most
    std::vector<int> places; // of the pattern's letters in the text
};

// An empty pattern matches everything with score 0. O(pattern × text).
std::optional<FuzzyMatch> fuzzyMatch(const QString& pattern, const QString& text);

} // namespace stagewright
