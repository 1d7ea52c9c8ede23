#include "widgets/notes/notes_model.h"

#include "traces/run/note_text.h"
#include "widgets/literals.h"
#include "widgets/sentence.h"

namespace stagewright {

void NotesModel::setNotes(std::vector<Note> notes, Nanos unit)
{
    m_unit = unit;
    if (notes.size() == m_notes.size()) { // the selection stays
        m_notes = std::move(notes);
        if (!m_notes.empty()) emit dataChanged(index(0, 0), index(rowCount() - 1, ColumnCount - 1));
        return;
    }
    beginResetModel();
    m_notes = std::move(notes);
    endResetModel();
}

int NotesModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_notes.size());
}
int NotesModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QVariant NotesModel::data(const QModelIndex& index, int role) const
{
    if (!index.isValid() || index.row() >= rowCount() || index.column() >= ColumnCount) return {};
    const Note& note = m_notes[static_cast<std::size_t>(index.row())];
    if (role == Qt::DisplayRole || role == Qt::EditRole) {
        if (index.column() == Text)
            return role == Qt::EditRole ? QString::fromStdString(note.text) : shownName(note.text);
        if (index.column() == Place) return shownName(placeText(note, m_unit));
        return note.fromRun == 0 ? QString() : u"run %1"_s.arg(note.fromRun);
    }
    if (role == Qt::ToolTipRole)
        return note.fromRun == 0 ? shownTip(QString::fromStdString(note.text))
                                 : shownTip(u"%1\nTaken over from run %2, which has the same schedule"_s
                                                .arg(QString::fromStdString(note.text))
                                                .arg(note.fromRun));
    if (role == Qt::AccessibleTextRole && index.column() == Text)
        return u"Note: %1, on %2"_s.arg(shownName(note.text), shownName(placeText(note, m_unit)));
    return {};
}

QVariant NotesModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (role != Qt::DisplayRole || orientation != Qt::Horizontal || section < 0 || section >= ColumnCount) return {};
    const QString titles[] = {u"Note"_s, u"Where"_s, u"Of"_s};
    return titles[section];
}

Qt::ItemFlags NotesModel::flags(const QModelIndex& index) const
{
    Qt::ItemFlags flags = QAbstractTableModel::flags(index);
    if (index.isValid() && index.column() == Text) flags |= Qt::ItemIsEditable;
    return flags;
}

bool NotesModel::setData(const QModelIndex& index, const QVariant& value, int role)
{
    if (role != Qt::EditRole || !index.isValid() || index.column() != Text || index.row() >= rowCount()) return false;
    const QString text = value.toString().trimmed();
    if (text.isEmpty() || text == QString::fromStdString(m_notes[static_cast<std::size_t>(index.row())].text))
        return false;
    emit edited(index.row(), text);
    return true;
}

} // namespace stagewright
