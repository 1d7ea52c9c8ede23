// SearchModel: search results as a table that reads each row on demand. GUI thread only.
#pragma once

#include <memory>
#include <vector>

#include <QAbstractTableModel>

#include "traces/run/notes.h"
#include "widgets/timeline/timeline_panel.h"

namespace stagewright {

struct SearchHit {
    SpanId span = noSpan;
    int note = -1; // index of the matching note; −1: the op itself matched
    bool operator==(const SearchHit&) const = default;
};

class SearchModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column {
        Op,
        Rank,
        Stage,
        Microbatch,
        Start,
        Duration,
        NoteText,
        ColumnCount,
    };

    explicit SearchModel(QObject* parent = nullptr) : QAbstractTableModel(parent) {}
    void setHits(std::shared_ptr<const TimelinePanel> panel, std::shared_ptr<const std::vector<SearchHit>> hits,
                 std::vector<Note> notes);
    void clear() { setHits(nullptr, nullptr, {}); }
    const SearchHit* hit(int row) const;

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

private:
    std::shared_ptr<const TimelinePanel> m_panel;
    std::shared_ptr<const std::vector<SearchHit>> m_hits;
    std::vector<Note> m_notes;
};

} // namespace stagewright
