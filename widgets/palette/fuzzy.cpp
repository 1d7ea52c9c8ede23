#include "widgets/palette/fuzzy.h"

#include <algorithm>
#include <limits>

namespace stagewright {
namespace {

constexpr int none = std::numeric_limits<int>::min() / 2;
constexpr int atWord = 9, inRow = 6, atBegin = 5, sameCase = 1;

bool beginsWord(const QString& text, int at)
{
    if (at == 0) return true;
    const QChar before = text[at - 1], here = text[at];
    return !before.isLetterOrNumber() || (before.isLower() && here.isUpper()) || (before.isLetter() != here.isLetter());
}

} // namespace

std::optional<FuzzyMatch> fuzzyMatch(const QString& given, const QString& text)
{
    QString pattern = given;
    pattern.remove(u' ');
    const int m = static_cast<int>(pattern.size()), n = static_cast<int>(text.size());
    if (m == 0) return FuzzyMatch{};
    if (m > n) return std::nullopt;
    // best[i][j]: pattern[0 … i] matched with its last letter at text[j]
    std::vector<std::vector<int>> best(static_cast<std::size_t>(m),
                                       std::vector<int>(static_cast<std::size_t>(n), none));
    std::vector<std::vector<int>> from(best.size(), std::vector<int>(static_cast<std::size_t>(n), -1));
    for (int i = 0; i < m; ++i) {
        int soFar = none, soFarAt = -1; // best of the row above, up to j − 2, minus a penalty per skipped letter
        for (int j = i; j < n; ++j) {
            if (i > 0 && j >= 2 && best[i - 1][j - 2] != none && best[i - 1][j - 2] >= soFar) {
                soFar = best[i - 1][j - 2];
                soFarAt = j - 2;
            }
            if (text[j].toLower() != pattern[i].toLower()) continue;
            int own = (beginsWord(text, j) ? atWord : 0) + (text[j] == pattern[i] ? sameCase : 0);
            if (i == 0) {
                best[0][j] = own + (j == 0 ? atBegin : -std::min(j, 6) / 2);
                continue;
            }
            const int row = best[i - 1][j - 1] == none ? none : best[i - 1][j - 1] + inRow;
            const int gap = soFar == none ? none : soFar - 1;
            if (row == none && gap == none) continue;
            best[i][j] = own + std::max(row, gap);
            from[i][j] = row >= gap ? j - 1 : soFarAt;
        }
    }
    const auto& last = best.back();
    const auto top = std::max_element(last.begin(), last.end());
    if (*top == none) return std::nullopt;
    FuzzyMatch match{*top - n / 16, std::vector<int>(static_cast<std::size_t>(m))};
    int j = static_cast<int>(top - last.begin());
    for (int i = m - 1; i >= 0; --i) {
        match.places[static_cast<std::size_t>(i)] = j;
        j = from[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
    }
    return match;
}

} // namespace stagewright
