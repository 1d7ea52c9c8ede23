// NotesModel: the notes of a run as a table with editable texts. It changes nothing itself: edited() announces an edit,
// and setNotes() shows the result. GUI thread only.
#pragma once

#include <vector>

#include <QAbstractTableModel>

#include "traces/run/notes.h"

namespace stagewright {

class NotesModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column {
        Text,
        Place,
        Origin,
        ColumnCount,
    };

    explicit NotesModel(QObject* parent = nullptr) : QAbstractTableModel(parent) {}
    void setNotes(std::vector<Note> notes, Nanos unit = 1); // unit: Timeline::timeUnit()
    const std::vector<Note>& notes() const { return m_notes; }

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;
    Qt::ItemFlags flags(const QModelIndex& index) const override;
    bool setData(const QModelIndex& index, const QVariant& value, int role = Qt::EditRole) override;

signals:
    void edited(int row, const QString& text);

private:
    std::vector<Note> m_notes;
    Nanos m_unit = 1;
};

} // namespace stagewright
