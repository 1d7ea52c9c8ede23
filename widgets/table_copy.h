// Tables as text: any table of the window as CSV or Markdown, by its context menu or by keys. A table is copied as
// shown: formatted figures with their units. GUI thread only.
#pragma once

#include <functional>

#include <QString>
#include <QStringList>
#include <QVector>

class QAbstractItemModel;
class QAbstractItemView;
class QGridLayout;
class QItemSelectionModel;
class QLabel;
class QMenu;
class QWidget;

namespace stagewright {

struct TableText {
    QString title;             // one line above a Markdown table; not in CSV
    QStringList header;        // empty: none
    QVector<QStringList> rows; // cells of a row; shorter rows are filled with empty cells
    bool isEmpty() const { return rows.isEmpty(); }
    int columns() const;
};

enum class TableFormat {
    Csv,
    Markdown,
};

// CSV: RFC 4180 with "\n" at line ends, cells quoted where they must be, "−" as "-" so that spreadsheets read numbers,
// no invisible break points. Markdown: a pipe table, columns of figures aligned right, "|" escaped, line breaks as
// <br>.
QString toText(const TableText& table, TableFormat format);

// All rows of a model in order, a tree's rows below their parent; if `selection` has more than one row, only those.
TableText tableOf(const QAbstractItemModel& model, const QItemSelectionModel* selection = nullptr);
// A view's visible columns, in screen order.
TableText tableOf(const QAbstractItemView& view);
// The labels and buttons of a grid, row by row; nested grids are inserted in place.
TableText tableOf(const QGridLayout& grid);

// Puts it on the clipboard: as plain text in `format`, as text/csv or text/markdown, and as an HTML table for word
// processors.
void copyTable(const TableText& table, TableFormat format);

// Gives `widget` (and its children) "Copy as CSV" (Ctrl+C) and "Copy as Markdown" (Ctrl+Shift+C), by keys while the
// focus is inside and by the context menu if the widget has none. `table` is called when a copy is made.
void makeCopyable(QWidget* widget, std::function<TableText()> table);
void makeCopyable(QAbstractItemView* view);
// The same two actions for a widget's own menu.
void addCopyActions(QMenu* menu, QWidget* widget, const std::function<TableText()>& table);
// A label with selectable text leaves Ctrl+C to the table around it while nothing is selected, and the context menu
// always.
void leaveCopyToTable(QLabel* label);
// The nearest of `widget` and its parents with makeCopyable(), as a table; empty if there is none.
TableText copyableTable(const QWidget* widget);

} // namespace stagewright
