// PaletteModel: the content of the command palette, filtered by a pattern, best and recently used entries first. Every
// word of the pattern must be in an entry: at the start of a word of its title, its description, its category or what
// users call it, or by letters of the title that start words. Where nothing is found so, letters in order are enough.
// GUI thread only.
#pragma once

#include <functional>
#include <vector>

#include <QAbstractListModel>
#include <QStringList>

namespace stagewright {

struct PaletteEntry {
    QString id;       // stable across restarts: "action:open"
    QString category; // "Action", "Run", …
    QString title;
    QString detail; // faint, after the title; searched
    QString keys;
    QString disabled; // why it is unavailable; empty: available
    std::function<void()> perform;
    QString words = {}; // what users call it; searched, not shown
};

class PaletteModel : public QAbstractListModel {
    Q_OBJECT
public:
    enum Role {
        CategoryRole = Qt::UserRole,
        DetailRole,
        KeysRole,
        DisabledRole,
        PlacesRole,
    };

    explicit PaletteModel(QObject* parent = nullptr) : QAbstractListModel(parent) {}
    void setEntries(std::vector<PaletteEntry> entries, QStringList recent); // recent ids, newest first
    // Called with every pattern for entries that are not listed in advance (ops); they come first, unfiltered.
    void setProvider(std::function<std::vector<PaletteEntry>(const QString&)> provider)
    {
        m_provider = std::move(provider);
    }
    void setPattern(const QString& pattern);
    const PaletteEntry* entry(int row) const;

    int rowCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    Qt::ItemFlags flags(const QModelIndex& index) const override;

private:
    struct Shown {
        const PaletteEntry* entry = nullptr;
        std::vector<int> places;
    };
    std::vector<PaletteEntry> m_entries;
    std::vector<PaletteEntry> m_provided;
    QStringList m_recent;
    std::function<std::vector<PaletteEntry>(const QString&)> m_provider;
    std::vector<Shown> m_shown;
};

} // namespace stagewright
