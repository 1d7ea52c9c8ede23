#include "widgets/notes/notes_panel.h"

#include <algorithm>

#include <QHeaderView>
#include <QKeyEvent>
#include <QLabel>
#include <QTableView>
#include <QVBoxLayout>

#include "widgets/literals.h"
#include "widgets/style.h"
#include "widgets/table_copy.h"

namespace stagewright {

NotesPanel::NotesPanel(QWidget* parent)
    : QWidget(parent), m_table(new QTableView(this)), m_empty(makeLabel({}, "secondary", this))
{
    setObjectName(u"panel"_s);
    setAttribute(Qt::WA_StyledBackground);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    m_empty->setText(
        u"No notes yet. Select an op or a range and press M, then Shift+M to save the note with the run."_s);
    m_empty->setWordWrap(true);
    m_empty->setContentsMargins(12, 10, 12, 10);
    layout->addWidget(m_empty);
    layout->addWidget(m_table, 1);
    m_table->setObjectName(u"notesTable"_s);
    m_table->setAccessibleName(u"Notes"_s);
    m_table->setToolTip(u"Enter: go to the note. F2: change its text. Delete: remove it."_s);
    m_table->setModel(&m_model);
    m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_table->setSelectionMode(QAbstractItemView::SingleSelection);
    m_table->setEditTriggers(QAbstractItemView::EditKeyPressed | QAbstractItemView::DoubleClicked);
    m_table->setShowGrid(false);
    m_table->setTabKeyNavigation(false);
    m_table->verticalHeader()->hide();
    m_table->horizontalHeader()->setHighlightSections(false);
    m_table->horizontalHeader()->setSectionResizeMode(NotesModel::Text, QHeaderView::Stretch);
    m_table->horizontalHeader()->setSectionResizeMode(NotesModel::Place, QHeaderView::ResizeToContents);
    m_table->horizontalHeader()->setSectionResizeMode(NotesModel::Origin, QHeaderView::ResizeToContents);
    m_table->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    m_table->installEventFilter(this);
    makeCopyable(m_table);
    connect(m_table->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& now) {
        if (now.isValid()) emit chosen(now.row());
    });
    connect(m_table, &QTableView::clicked, this, [this](const QModelIndex& at) { emit chosen(at.row()); });
    setNotes({});
}

void NotesPanel::setNotes(std::vector<Note> notes, Nanos unit)
{
    const int row = currentRow();
    m_model.setNotes(std::move(notes), unit);
    const bool any = m_model.rowCount() > 0;
    m_empty->setVisible(!any);
    m_table->setVisible(any);
    m_table->setColumnHidden(NotesModel::Origin, std::none_of(m_model.notes().begin(), m_model.notes().end(),
                                                              [](const Note& note) { return note.fromRun != 0; }));
    if (row >= 0 && row < m_model.rowCount()) {
        const QSignalBlocker quiet(m_table->selectionModel());
        m_table->setCurrentIndex(m_model.index(row, 0));
    }
}

int NotesPanel::currentRow() const { return m_table->currentIndex().isValid() ? m_table->currentIndex().row() : -1; }

void NotesPanel::setCurrentRow(int row)
{
    const QSignalBlocker quiet(m_table->selectionModel());
    m_table->setCurrentIndex(m_model.index(row, 0)); // none where there is no such row
    m_table->viewport()->update();
}

void NotesPanel::editRow(int row)
{
    const QModelIndex at = m_model.index(row, NotesModel::Text);
    if (!at.isValid()) return;
    setCurrentRow(row);
    m_table->setFocus();
    m_table->edit(at);
}

bool NotesPanel::eventFilter(QObject* watched, QEvent* event)
{
    // The view makes its first row current when it gets the focus, although nobody chose it.
    if (watched == m_table && event->type() == QEvent::FocusIn && currentRow() < 0 && m_model.rowCount() > 0)
        setCurrentRow(0);
    if (watched == m_table && (event->type() == QEvent::KeyPress || event->type() == QEvent::ShortcutOverride) &&
        m_table->hasFocus()) {
        const auto* key = static_cast<QKeyEvent*>(event);
        const bool enter = key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter;
        if ((enter || key->key() == Qt::Key_Delete || key->key() == Qt::Key_F2) && key->modifiers() == Qt::NoModifier &&
            currentRow() >= 0) {
            if (event->type() == QEvent::ShortcutOverride) {
                event->accept();
                return true;
            }
            if (enter)
                emit activated(currentRow());
            else if (key->key() == Qt::Key_Delete)
                emit removeAsked(currentRow());
            else
                editRow(currentRow());
            return true;
        }
    }
    return QWidget::eventFilter(watched, event);
}

} // namespace stagewright
