#include "widgets/palette/palette_model.h"

#include <algorithm>

#include "widgets/literals.h"
#include "widgets/palette/fuzzy.h"
#include "widgets/sentence.h"

namespace stagewright {
namespace {

// The words of a pattern, without those that say nothing of what is looked for, unless there are no others.
QStringList wordsOf(const QString& pattern)
{
    static const QStringList idle{u"a"_s,  u"an"_s,  u"and"_s, u"the"_s, u"of"_s, u"to"_s, u"my"_s,     u"in"_s,
                                  u"is"_s, u"for"_s, u"how"_s, u"do"_s,  u"i"_s,  u"it"_s, u"please"_s, u"with"_s};
    QStringList all = pattern.toLower().split(u' ', Qt::SkipEmptyParts), telling;
    for (const QString& word : all)
        if (!idle.contains(word)) telling << word;
    return telling.isEmpty() ? all : telling;
}

// Where a word starts one of the text; −1: nowhere.
qsizetype startOf(const QString& word, const QString& text)
{
    for (qsizetype at = text.indexOf(word, 0, Qt::CaseInsensitive); at >= 0;
         at = text.indexOf(word, at + 1, Qt::CaseInsensitive))
        if (at == 0 || !text[at - 1].isLetterOrNumber()) return at;
    return -1;
}

// The letters of a word at the starts of words of a title, or next to each other: "crpa" in "Critical path".
std::optional<FuzzyMatch> initials(const QString& word, const QString& title)
{
    auto match = fuzzyMatch(word, title);
    if (!match) return match;
    for (std::size_t i = 0; i < match->places.size(); ++i) {
        const int at = match->places[i];
        const bool follows = i > 0 && match->places[i - 1] == at - 1;
        const bool begins = at == 0 || !title[at - 1].isLetterOrNumber();
        if (!follows && !begins) return std::nullopt;
    }
    return match;
}

// Every word is somewhere. What is in the title counts most, then what users call it.
std::optional<FuzzyMatch> wordMatch(const QStringList& words, const QString& pattern, const PaletteEntry& entry)
{
    FuzzyMatch all;
    for (const QString& word : words) {
        if (const auto at = startOf(word, entry.title); at >= 0) {
            const bool whole =
                at + word.size() == entry.title.size() || !entry.title[at + word.size()].isLetterOrNumber();
            all.score += 40 + (whole ? 6 : 0) + (at == 0 ? 4 : 0) - static_cast<int>(std::min<qsizetype>(at, 20)) / 2;
            for (qsizetype k = 0; k < word.size(); ++k) all.places.push_back(static_cast<int>(at + k));
        } else if (startOf(word, entry.words) >= 0) {
            all.score += 34;
        } else if (const auto letters = initials(word, entry.title)) {
            all.score += 24;
            all.places.insert(all.places.end(), letters->places.begin(), letters->places.end());
        } else if (startOf(word, entry.category) >= 0) {
            all.score += 12;
        } else if (startOf(word, entry.detail) >= 0) {
            all.score += 10;
        } else {
            // words written as one: "criticalpath"
            const auto joined = words.size() == 1 ? initials(pattern, entry.title) : std::nullopt;
            if (!joined) return std::nullopt;
            return joined;
        }
    }
    std::sort(all.places.begin(), all.places.end());
    all.places.erase(std::unique(all.places.begin(), all.places.end()), all.places.end());
    return all;
}

std::optional<FuzzyMatch> looseMatch(const QString& pattern, const PaletteEntry& entry)
{
    if (auto match = fuzzyMatch(pattern, entry.title)) return match;
    auto match = fuzzyMatch(pattern, entry.category + u' ' + entry.title); // "run zb": the category may precede it
    if (!match) return match;
    match->score /= 2;
    match->places.clear();
    return match;
}

} // namespace

void PaletteModel::setEntries(std::vector<PaletteEntry> entries, QStringList recent)
{
    beginResetModel();
    m_shown.clear();
    m_entries = std::move(entries);
    m_recent = std::move(recent);
    endResetModel();
    setPattern({});
}

void PaletteModel::setPattern(const QString& pattern)
{
    struct Ranked {
        Shown shown;
        int score;
        int order;
    };
    std::vector<Ranked> ranked;
    beginResetModel();
    m_provided = m_provider ? m_provider(pattern) : std::vector<PaletteEntry>{};
    m_shown.clear();
    const QStringList words = wordsOf(pattern);
    for (const bool loose : {false, true}) { // letters in order only where no words are found
        int order = 0;
        for (const PaletteEntry& entry : m_entries) {
            ++order;
            auto match = loose ? looseMatch(pattern, entry) : wordMatch(words, pattern, entry);
            if (!match) continue;
            int score = match->score;
            const auto used = m_recent.indexOf(entry.id);
            if (used >= 0)
                score += pattern.isEmpty() ? 1000 - static_cast<int>(used) : std::max(1, 8 - static_cast<int>(used));
            if (!entry.disabled.isEmpty()) score -= pattern.isEmpty() ? 2000 : 6;
            ranked.push_back({{&entry, std::move(match->places)}, score, order});
        }
        if (!ranked.empty()) break;
    }
    std::stable_sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
        return a.score != b.score ? a.score > b.score : a.order < b.order;
    });
    for (const PaletteEntry& entry : m_provided) m_shown.push_back({&entry, {}});
    for (Ranked& one : ranked) m_shown.push_back(std::move(one.shown));
    endResetModel();
}

const PaletteEntry* PaletteModel::entry(int row) const
{
    return row >= 0 && row < rowCount() ? m_shown[static_cast<std::size_t>(row)].entry : nullptr;
}

int PaletteModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_shown.size());
}

QVariant PaletteModel::data(const QModelIndex& index, int role) const
{
    const PaletteEntry* one = index.isValid() ? entry(index.row()) : nullptr;
    if (one == nullptr) return {};
    switch (role) {
    case Qt::DisplayRole: return one->title;
    case Qt::ToolTipRole: return shownTip(one->disabled.isEmpty() ? one->detail : one->disabled);
    case CategoryRole: return one->category;
    case DetailRole: return one->detail;
    case KeysRole: return one->keys;
    case DisabledRole: return one->disabled;
    case PlacesRole: {
        QVariantList places;
        for (const int place : m_shown[static_cast<std::size_t>(index.row())].places) places << place;
        return places;
    }
    case Qt::AccessibleTextRole: {
        QString text = u"%1: %2"_s.arg(one->category, one->title);
        if (!one->keys.isEmpty()) text += u", "_s + one->keys;
        if (!one->disabled.isEmpty()) text += u", "_s + u"not available: %1"_s.arg(one->disabled);
        return text;
    }
    default: return {};
    }
}

Qt::ItemFlags PaletteModel::flags(const QModelIndex& index) const
{
    return index.isValid() ? Qt::ItemIsSelectable | Qt::ItemIsEnabled | Qt::ItemNeverHasChildren : Qt::NoItemFlags;
}

} // namespace stagewright
