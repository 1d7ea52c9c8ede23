// RunsPanel: the list of open files and their runs at the left: name and shape, time and bubble ratio, A and B marks.
#pragma once

#include <QPersistentModelIndex>
#include <QStyledItemDelegate>
#include <QTreeView>
#include <QWidget>

#include "widgets/runs/runs_model.h"
#include "widgets/table_copy.h"
#include "widgets/theme.h"

class QLabel;
class QLineEdit;

namespace stagewright {

// Paints a run as two lines with its figures at the right. A file's row shows its name and number of runs.
class RunDelegate : public QStyledItemDelegate {
    Q_OBJECT
public:
    explicit RunDelegate(QObject* parent = nullptr) : QStyledItemDelegate(parent) {}
    void setTheme(const Theme& theme) { m_theme = &theme; }
    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;

private:
    const Theme* m_theme = &Theme::light();
};

class RunsPanel : public QWidget {
    Q_OBJECT
public:
    explicit RunsPanel(RunsModel* model, QWidget* parent = nullptr);
    void setTheme(const Theme& theme);
    void setCurrent(const RunRef& ref); // selects without emitting runChosen
    RunRef current() const;
    QTreeView* tree() { return m_tree; }
    void addBelow(QWidget* widget); // under the list
    bool hasBelow() const;          // that widget has something to show
    TableText table() const;        // all files and runs, with every column

signals:
    void runChosen(const stagewright::RunRef& ref);      // click or Enter
    void runChosenAgain(const stagewright::RunRef& ref); // click on the one that was current
    void compareAsked(const stagewright::RunRef& ref);   // Ctrl+click: with the run shown
    void left();                                         // Escape in the find field
    void menuAsked(const QPoint& global, const stagewright::RunRef& ref, const QString& file);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void sift();
    void siftRows(const QModelIndex& parent, int first, int last);
    QLineEdit* m_find;
    RunsModel* m_model;
    QTreeView* m_tree;
    QPersistentModelIndex m_pressedAt; // what was current before the button went down
    RunDelegate* m_delegate;
    QLabel* m_empty;
    QWidget* m_below = nullptr;
};

} // namespace stagewright
