// NotesPanel: the notes of the run shown, in a list. Enter goes to a note, F2 edits its text, Delete removes it.
#pragma once

#include <QWidget>

#include "widgets/notes/notes_model.h"

class QLabel;
class QTableView;

namespace stagewright {

class NotesPanel : public QWidget {
    Q_OBJECT
public:
    explicit NotesPanel(QWidget* parent = nullptr);
    NotesModel* model() { return &m_model; }
    QTableView* table() { return m_table; }
    void setNotes(std::vector<Note> notes, Nanos unit = 1); // unit: Timeline::timeUnit()
    int currentRow() const;                                 // −1: none
    void setCurrentRow(int row);
    void editRow(int row);

signals:
    void chosen(int row); // by arrows or a click
    void activated(int row);
    void removeAsked(int row);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    NotesModel m_model;
    QTableView* m_table;
    QLabel* m_empty;
};

} // namespace stagewright
