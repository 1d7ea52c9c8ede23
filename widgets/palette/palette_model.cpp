#include "widgets/palette/palette_model.h"

#include <algorithm>

#include "widgets/literals.h"
#include "widgets/palette/fuzzy.h"
#include "widgets/sentence.h"

namespace stagewright {

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
    int order = 0;
    for (const PaletteEntry& entry : m_entries) {
        ++order;
        auto match = fuzzyMatch(pattern, entry.title);
        int score = match ? match->score : 0;
        if (!match) { // "run zb": the category may precede the title
            match = fuzzyMatch(pattern, entry.category + u' ' + entry.title);
            if (!match) continue;
            score = match->score / 2;
            match->places.clear();
        }
        const auto used = m_recent.indexOf(entry.id);
        if (used >= 0)
            score += pattern.isEmpty() ? 1000 - static_cast<int>(used) : std::max(1, 8 - static_cast<int>(used));
        if (!entry.disabled.isEmpty()) score -= pattern.isEmpty() ? 2000 : 6;
        ranked.push_back({{&entry, std::move(match->places)}, score, order});
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
